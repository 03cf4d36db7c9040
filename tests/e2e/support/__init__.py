# SPDX-License-Identifier: MIT
"""What the end-to-end tests are made of: real PHP, a real daemon, and patience with a deadline."""
