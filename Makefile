# SPDX-License-Identifier: MIT
# cbox-profd: `make` builds, `sudo make demo` shows it at work, `sudo make check` proves it. `make help` lists the rest.

VERSION  := $(shell cat VERSION)
PREFIX   ?= /usr/local
BUILD    ?= build
CC       ?= gcc
PYTHON   ?= /usr/bin/python3
PACKAGES := libelf libdw yaml-0.1 libcjson

CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum -Wformat=2 -Wno-unused-parameter
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DCBOX_PROFD_VERSION='"$(VERSION)"' -I. $(WARNINGS) $(if $(WERROR),-Werror) \
	-fno-omit-frame-pointer -fstack-protector-strong -MMD -MP $(shell pkg-config --cflags $(PACKAGES)) $(CFLAGS)
ALL_LIBS   = $(shell pkg-config --libs $(PACKAGES)) -lpthread $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)	$(2)")

# The rooms, lowest last: each is a library of its own, so that a link shows who leans on whom.
ROOMS   := daemon/cli daemon/service daemon/sampling daemon/export daemon/profile config reader symbols
room_lib = $(BUILD)/lib$(subst /,-,$(1)).a
LIBS    := $(foreach room,$(ROOMS),$(call room_lib,$(room)))
TESTS   := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/*/test_*.c))

all: $(BUILD)/cbox-profd

$(BUILD)/cbox-profd: $(BUILD)/daemon/main.o $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(ALL_LIBS)

define room_rule
$(call room_lib,$(1)): $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1)/*.c))
	$$(call say,AR,$$@)
	$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach room,$(ROOMS),$(eval $(call room_rule,$(room))))

$(BUILD)/%.o: %.c VERSION
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# A unit test links its own room and those below it: tests/unit/ROOM/test_x.c, with / in a room's name as -.
.SECONDEXPANSION:
rooms_from = $(shell printf '%s\n' $(ROOMS) | sed -n '\#^$(subst -,/,$(1))$$#,$$p')
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $$(foreach room,$$(call rooms_from,$$(subst /,,$$(dir $$*))),$$(call room_lib,$$(room)))
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -lcmocka $(ALL_LIBS)

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

unit: $(TESTS) ## unit tests (cmocka)
	@for test in $(TESTS); do echo "  TEST	$$test"; $$test || exit 1; done

check: ## installs what is missing, builds, runs all tests
	@tests/setup/install-debian build check
	@tests/setup/install-php-builds
	$(Q)$(MAKE) --no-print-directory all unit
	$(Q)tests/run-e2e
	$(Q)tests/run-php

demo: ## installs what is missing, profiles a php-fpm of its own under load, shows the result
	@tests/setup/install-debian build demo
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/demo

asan: ## unit tests and the program with AddressSanitizer
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/asan CFLAGS="-O1 -g -fsanitize=address" LDFLAGS="-fsanitize=address" all unit

ubsan: ## the same with UndefinedBehaviorSanitizer
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/ubsan CFLAGS="-O1 -g -fsanitize=undefined -fno-sanitize-recover=all" LDFLAGS="-fsanitize=undefined" all unit

SOURCES := $(shell git ls-files '*.c' '*.h' 2>/dev/null)

tidy: ## clang-tidy and cppcheck
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $(filter %.c,$(SOURCES)) -- -std=gnu11 -D_GNU_SOURCE -DCBOX_PROFD_VERSION='"$(VERSION)"' -I.
	$(Q)cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr --suppressions-list=.cppcheck -I. $(filter-out tests/%,$(filter %.c,$(SOURCES)))

format: ## clang-format over all sources
	$(Q)clang-format -i $(SOURCES)

format-check:
	$(Q)clang-format --dry-run --Werror $(SOURCES)

# What `make bench` measures with: the rooms, and one program that calls them.
$(BUILD)/tests/bench/driver: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/*.c)) $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ -Wl,--start-group $^ -Wl,--end-group $(ALL_LIBS)

bench: all $(BUILD)/tests/bench/driver ## what a sample, a target, an attach and a finish cost; three minutes
	$(Q)BUILD=$(BUILD) tests/bench/run

install: all ## into $(DESTDIR)$(PREFIX)
	install -D -m 755 $(BUILD)/cbox-profd $(DESTDIR)$(PREFIX)/bin/cbox-profd
	install -D -m 644 config/cbox-profd.yaml $(DESTDIR)/etc/cbox-profd/cbox-profd.yaml
	systemd/install "$(DESTDIR)" "$(PREFIX)"

clean:
	rm -rf $(BUILD)

.PHONY: all help unit check demo asan ubsan tidy format format-check bench install clean
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
