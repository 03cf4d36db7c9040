<?php
// SPDX-License-Identifier: MIT
// A frame called "require_once", with the variables of the function that included it.
return App\Chain\iterated($job);
