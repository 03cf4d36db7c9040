/* SPDX-License-Identifier: MIT
 *
 * What it takes to begin with a process: examining it (maps, ELF, layout, self-test), and the first samples,
 * in which every function is new and nothing is predicted yet. A frame table of its own for each attach, so
 * that names are new, too, as for a daemon's first target.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/profile/frame_table.h"
#include "reader/php_process.h"
#include "tests/bench/driver.h"

#define MAX_FRAMES 65536
#define MAX_BYTES (16U << 20)

static uint32_t intern(void *context, const struct function_name *name)
{
	return frame_table_intern(context, name);
}

static int attach(pid_t pid, struct php_sample *sample)
{
	_cleanup_(frame_table_freep) struct frame_table *table = NULL;
	_cleanup_(php_process_closep) struct php_process *process = NULL;
	uint64_t start_ns, cpu_ns, opened_ns, first_ns;
	struct frame_names names = {.intern = intern};
	const struct php_process_options options = {0};
	char why[256] = "";

	if (frame_table_new(MAX_FRAMES, MAX_BYTES, &table) < 0)
		return 1;
	names.context = table;
	cpu_ns = driver_cpu_ns();
	start_ns = driver_now_ns();
	if (php_process_open(pid, &names, &options, &process, why, sizeof(why)) != 0) {
		fprintf(stderr, "process %d: %s\n", (int)pid, why);
		return 1;
	}
	cpu_ns = driver_cpu_ns() - cpu_ns;
	opened_ns = driver_now_ns();
	if (php_process_sample(process, sample) != 0)
		return 1;
	first_ns = driver_now_ns();
	if (php_process_sample(process, sample) != 0)
		return 1;
	printf("attach %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", opened_ns - start_ns,
		first_ns - opened_ns, driver_now_ns() - first_ns, cpu_ns);
	return 0;
}

int driver_attach(char **arguments)
{
	struct php_sample *sample = malloc(sizeof(*sample));
	int rounds = atoi(arguments[1]), status = sample ? 0 : 1;

	for (int round = 0; round < rounds && status == 0; round++)
		status = attach((pid_t)atoi(arguments[0]), sample);
	free(sample);
	return status;
}
