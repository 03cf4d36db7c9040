# SPDX-License-Identifier: MIT
# cbox-profd: `make` builds, `sudo make demo` shows it at work, `sudo make check` proves it. `make help` lists the rest.

VERSION  := $(shell cat VERSION)
PREFIX   ?= /usr/local
BUILD    ?= build
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

all: $(BUILD)/cbox-profd ## the program; WERROR=1, CC=clang, V=1 (shows the commands), BUILD=DIRECTORY

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

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

unit: $(TESTS) ## unit tests (cmocka)
	@for test in $(TESTS); do echo "  TEST	$$test"; $$test || exit 1; done

check: ## installs what is missing, builds, runs all tests
	@tests/setup/install-debian build check
	@tests/setup/install-php-builds
	$(Q)$(MAKE) --no-print-directory all unit $(BUILD)/tests/bench/driver
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

tsan: ## the engine's unit tests, and the program, with ThreadSanitizer (BUILD=build/tsan setarch -R tests/run-e2e test_threads.py)
	$(Q)setarch -R $(MAKE) --no-print-directory BUILD=$(BUILD)/tsan CFLAGS="-O1 -g -fsanitize=thread" LDFLAGS="-fsanitize=thread" \
		TESTS="$(patsubst %.c,$(BUILD)/tsan/%,$(wildcard tests/unit/daemon-sampling/test_*.c))" all unit

FUZZ_SECONDS ?= 20
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
$(FUZZERS): %: %.o $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(ALL_LIBS)

fuzz: ## feeds each parser of what strangers write for FUZZ_SECONDS; clang's libFuzzer, with both sanitizers
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CC=clang CFLAGS="-O1 -g -fsanitize=fuzzer-no-link,address,undefined" \
		LDFLAGS="-fsanitize=fuzzer,address,undefined" run-fuzzers
run-fuzzers: $(FUZZERS)
	@mkdir -p $(FUZZERS:=.corpus)
	@echo 'int seed = 1;' | $(CC) -shared -nostdlib -x c -o $(BUILD)/tests/fuzz/fuzz_elf_image.corpus/seed -
	@for fuzzer in $(FUZZERS); do echo "  FUZZ	$$fuzzer"; $$fuzzer -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$$fuzzer. \
		$$fuzzer.corpus 2>$$fuzzer.log || { tail -50 $$fuzzer.log; exit 1; }; done

SOURCES := $(shell git ls-files '*.c' '*.h' 2>/dev/null)

tidy: ## clang-tidy and cppcheck (see .clang-tidy, .cppcheck); two minutes on two CPUs
	$(Q)printf '%s\n' $(filter %.c,$(SOURCES)) | xargs -P$$(nproc) -I{} clang-tidy --quiet {} -- $(filter -std=% -D% -I%,$(ALL_CFLAGS)) \
		2>&1 | { ! grep -v ' warnings\? generated\.$$'; }
	$(Q)cppcheck -j$$(nproc) --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability --suppressions-list=.cppcheck \
		$(filter -D% -I%,$(ALL_CFLAGS)) $(filter-out tests/%,$(filter %.c,$(SOURCES)))

format: ## clang-format over all sources
	$(Q)clang-format -i $(SOURCES)

format-check: ## says which sources `make format` would change
	$(Q)clang-format --dry-run --Werror $(SOURCES)

# What `make bench` and `make oracle` measure with: the rooms, and one program that calls them.
$(BUILD)/tests/bench/driver: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/*.c)) $(LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) -o $@ -Wl,--start-group $^ -Wl,--end-group $(ALL_LIBS)

bench: ## installs what is missing, measures what sampling costs, also those who are sampled; eight minutes
	@tests/setup/install-debian build bench
	$(Q)$(MAKE) --no-print-directory all $(BUILD)/tests/bench/driver
	$(Q)BUILD=$(BUILD) tests/bench/run

oracle: ## installs what is missing, proves that samples are right, by programs whose stacks and shares are known; twelve minutes
	@tests/setup/install-debian build demo
	$(Q)$(MAKE) --no-print-directory all $(BUILD)/tests/bench/driver
	$(Q)BUILD=$(BUILD) tests/bench/oracle

install: all ## into $(DESTDIR)$(PREFIX); a configuration that is there stays
	@systemd/install --check "$(DESTDIR)" "$(PREFIX)"
	install -D -m 755 $(BUILD)/cbox-profd $(DESTDIR)$(PREFIX)/bin/cbox-profd
	@if test -e $(DESTDIR)/etc/cbox-profd/cbox-profd.yaml; then echo "$(DESTDIR)/etc/cbox-profd/cbox-profd.yaml is there, and stays"; \
		else install -v -D -m 644 config/cbox-profd.yaml $(DESTDIR)/etc/cbox-profd/cbox-profd.yaml; fi
	systemd/install "$(DESTDIR)" "$(PREFIX)"

uninstall: ## removes what install put into $(DESTDIR)$(PREFIX); the configuration stays
	@systemd/install --check "$(DESTDIR)" "$(PREFIX)"
	rm -f $(DESTDIR)$(PREFIX)/bin/cbox-profd
	systemd/install --remove "$(DESTDIR)" "$(PREFIX)"

clean: ## removes $(BUILD)
	rm -rf $(BUILD)

.PHONY: all help unit check demo asan ubsan tsan fuzz run-fuzzers tidy format format-check bench oracle install uninstall clean
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
