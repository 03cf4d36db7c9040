/* SPDX-License-Identifier: MIT
 *
 * Whose CPU time it was, on a machine with four times as much to do as it has CPUs: targets ticked at random
 * times, against a simulated scheduler that knows.
 */
#include "daemon/sampling/cadence.h"
#include "target_fixture.h"

#define US 1000ull
#define SLICE_NS (3 * MS)
#define SCHEDULER_TICK_NS (4 * MS)
#define SAMPLES 100000

/* 2 ms of work, then four times: sleep for 400 us, and 250 us of work in between. Of 3 ms on a CPU, 2 are
 * "work"'s. */
static const struct phase {
	const char *function;
	uint64_t ns;
	bool sleeps;
} phases[] = {
	{"work", 2 * MS, false},
	{"calls", 400 * US, true},
	{"calls", 250 * US, false},
	{"calls", 400 * US, true},
	{"calls", 250 * US, false},
	{"calls", 400 * US, true},
	{"calls", 250 * US, false},
	{"calls", 400 * US, true},
	{"calls", 250 * US, false},
};
#define PHASES (sizeof(phases) / sizeof(phases[0]))

/* A worker among others. It runs for a slice, then it is the others' turn; and so it is when it wakes up. */
static struct {
	enum { ON_CPU, QUEUED, ASLEEP } state;
	size_t phase;
	uint64_t now_ns, state_since_ns, state_ends_ns; /* slices end, sleeps, and the others' turns */
	uint64_t phase_left_ns;
	uint64_t run_ns, queue_ns, switch_ins;
	uint64_t cpu_ns[2]; /* of work, of calls */
	bool on_our_cpu;
	uint64_t random;
} worker;

static uint64_t random_below(uint64_t bound)
{
	worker.random ^= worker.random << 13;
	worker.random ^= worker.random >> 7;
	worker.random ^= worker.random << 17;
	return worker.random % bound;
}

static void enter(int state, uint64_t for_ns)
{
	worker.state = state;
	worker.state_since_ns = worker.now_ns;
	worker.state_ends_ns = worker.now_ns + for_ns;
}

/* For three others' slices, more or less; who wakes up does not wait for that many. */
static void queue(bool woken)
{
	enter(QUEUED, random_below((woken ? 2 : 6) * SLICE_NS));
}

static void switch_in(void)
{
	worker.queue_ns += worker.now_ns - worker.state_since_ns;
	worker.switch_ins++;
	worker.on_our_cpu = random_below(2);
	enter(ON_CPU, SLICE_NS);
}

static void begin_next_phase(void)
{
	worker.phase = (worker.phase + 1) % PHASES;
	worker.phase_left_ns = phases[worker.phase].sleeps ? 0 : phases[worker.phase].ns;
	if (phases[worker.phase].sleeps)
		enter(ASLEEP, phases[worker.phase].ns);
}

static void advance_worker(uint64_t until_ns)
{
	while (worker.now_ns < until_ns) {
		uint64_t step_ns = smaller_of(until_ns, worker.state_ends_ns) - worker.now_ns;

		if (worker.state == ON_CPU) {
			step_ns = smaller_of(step_ns, worker.phase_left_ns);
			worker.run_ns += step_ns;
			worker.phase_left_ns -= step_ns;
			worker.cpu_ns[strcmp(phases[worker.phase].function, "calls") == 0] += step_ns;
		}
		worker.now_ns += step_ns;
		if (worker.state == ON_CPU && worker.phase_left_ns == 0) {
			begin_next_phase();
		} else if (worker.now_ns == worker.state_ends_ns) {
			bool woken = worker.state == ASLEEP;

			if (woken)
				begin_next_phase();
			if (worker.state == QUEUED)
				switch_in();
			else
				queue(woken);
		}
	}
}

/* What the kernel shows of it. Of one on a CPU it has the run time as of the scheduler's last tick. */
static void show_worker(void)
{
	uint64_t stale_ns = 0;

	if (worker.state == ON_CPU)
		stale_ns =
			smaller_of(worker.now_ns % SCHEDULER_TICK_NS, worker.now_ns - worker.state_since_ns);
	fake.now_ns = worker.now_ns;
	fake.clocks = (struct activity_clocks){.run_ns = worker.run_ns - stale_ns,
		.queue_ns = worker.queue_ns,
		.switch_ins = worker.switch_ins};
	fake.blocked = worker.state == ASLEEP;
	fake.queued = worker.state == QUEUED;
	fake.driven_off = worker.state == ON_CPU && worker.on_our_cpu;
	if (fake.driven_off)
		fake.clocks.run_ns = worker.run_ns;
	fake_in_function(&sampling, phases[worker.phase].function);
}

/* On its CPU the sampler takes 50 us, and then it may be somebody else's turn. */
static void be_disturbed(void)
{
	if (fake.driven_off)
		enter(QUEUED, random_below(3) ? 50 * US : 50 * US + random_below(6 * SLICE_NS));
	fake.driven_off = false;
}

/* How far "calls"' share of the CPU is from the truth, in thousandths. */
static int error_at(uint64_t period_ns)
{
	_cleanup_(profile_freep) struct profile *seen = NULL;
	struct cadence cadence;
	struct cadence_due due;

	memset(&worker, 0, sizeof(worker));
	worker.random = 4711;
	worker.now_ns = fake.now_ns;
	worker.phase = PHASES - 1;
	begin_next_phase();
	switch_in();
	show_worker();
	fake_request("/", fake.now_ns);
	cadence_start(&cadence, period_ns, fake.now_ns, 815);
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t now_ns = cadence.deadline_ns;

		cadence_due(&cadence, now_ns, &due);
		advance_worker(now_ns);
		show_worker();
		assert_int_equal(fake_tick(target, &sampling), TARGET_LIVES);
		be_disturbed();
	}
	seen = window();
	/* It had a CPU for less than a third of the time. */
	assert_in_range(profile_sum(seen).cpu_ns * 100 / profile_sum(seen).wall_ns, 5, 33);
	return (int)(time_of(seen, "calls").cpu_ns * 1000 / profile_sum(seen).cpu_ns) -
	       (int)(worker.cpu_ns[1] * 1000 / (worker.cpu_ns[0] + worker.cpu_ns[1]));
}

static void functions_that_are_woken_up_get_the_cpu_they_used_at_100_hz(void **state)
{
	assert_in_range(error_at(10 * MS) + 10, 0, 20);
}

/* Who is driven off a CPU by each tick that finds it there is where no tick finds it, until it is back: a
 * point in a third for those who are on a CPU for the shortest. */
static void and_at_1_khz_nearly(void **state)
{
	assert_in_range(error_at(MS) + 20, 0, 40);
}

static void they_would_get_some_of_the_others_if_all_who_are_ready_were_taken_to_run(void **state)
{
	fake.page_is_not_there = true;
	assert_in_range(error_at(10 * MS), 100, 1000);
}

int main(void)
{
#define WORKER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WORKER_TEST(functions_that_are_woken_up_get_the_cpu_they_used_at_100_hz),
		WORKER_TEST(and_at_1_khz_nearly),
		WORKER_TEST(they_would_get_some_of_the_others_if_all_who_are_ready_were_taken_to_run),
	};

	return cmocka_run_group_tests_name("oversubscription", tests, NULL, NULL);
}
