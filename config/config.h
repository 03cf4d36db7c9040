/* SPDX-License-Identifier: MIT
 *
 * The configuration file as a struct: every key known, typed and range-checked. config/cbox-profd.yaml is the
 * shipped file with each key explained; docs/CONFIGURATION.md is for people.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFIG_DEFAULT_PATH "/etc/cbox-profd/cbox-profd.yaml"
#define CONFIG_MAX_POOLS 64
#define CONFIG_MAX_FILE_BYTES (1 << 20)

/* One entry of `pools:`. Exactly one of the four ways to find its workers is set. */
struct config_pool {
	char name[64];      /* the group in all outputs; "" = FPM's own pool name */
	char fpm_pool[256]; /* glob on FPM's pool name */
	pid_t master_pid;   /* 0: not set */
	char pid_file[256];
	char executable[256]; /* glob on the executable's path */
	uint64_t period_ns;   /* 0: sampling.rate */
};

/* When a worker is read from the CPU it runs on. */
enum config_placement {
	CONFIG_PLACEMENT_AUTO = 0,
	CONFIG_PLACEMENT_NEVER,
	CONFIG_PLACEMENT_ALWAYS,
};

struct config {
	struct {
		uint64_t period_ns;      /* sampling.rate (Hz) or sampling.period (us, ms); default 100 Hz */
		uint64_t min_period_ns;  /* sampling.max_rate; default 1 kHz: the fastest a unit or an
					    operator may ask for */
		uint64_t max_period_ns;  /* 1 s, fixed */
		uint32_t max_depth;      /* 1…1024 */
		bool realtime;           /* SCHED_FIFO for the sampler threads */
		uint32_t threads;        /* that sample */
		uint32_t cpu_budget_ppm; /* millionths of one CPU, for all of them; 0: no limit */
		enum config_placement placement;
	} sampling;
	struct {
		uint32_t max_targets, max_frames, max_nodes;
		uint32_t retained_units;
		uint64_t retained_bytes;
		uint64_t retained_ns;
		uint64_t auto_max_ns;
	} limits;
	struct {
		uint64_t interval_ns;
	} discovery;
	struct {
		char path[108]; /* sun_path's size */
		char group[64]; /* of the socket and for reader verbs; "": none */
		char admin_group[64];
		mode_t mode;
		uint32_t max_clients, max_clients_per_uid;
		uint32_t requests_per_second_per_uid;
		uint32_t max_line_bytes;
		uint32_t max_pending_bytes; /* answers a client has not read yet */
		uint64_t idle_timeout_ns;
	} socket;
	struct {
		bool traceparent; /* trace.traceparent: take the incoming header where the global is absent */
	} trace;
	struct config_pool pools[CONFIG_MAX_POOLS];
	size_t pool_count;
};

/* Every key at its default; the one pool "*" (all FPM pools). */
void config_init(struct config *ret_config);

/* Reads @path over the defaults. 0, or -EINVAL with one line in @ret_why: "file:line:column: key: what was
 * found; what is allowed", or another negative errno (the file can't be read; also with a line). @ret_config
 * is untouched on failure. */
int config_load(const char *path, struct config *ret_config, char *ret_why, size_t why_bytes);

/* The same from memory; @name stands for the file in messages. */
int config_parse(const char *text, size_t bytes, const char *name, struct config *ret_config, char *ret_why,
	size_t why_bytes);
