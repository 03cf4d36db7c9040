/* SPDX-License-Identifier: MIT
 *
 * What the verbs share among themselves: the two halves each is made of, and help with orders. For
 * verb_*.c and verbs.c alone.
 */
#pragma once

#include "daemon/service/verbs.h"

/* Between the two halves the orders are with the engine and the service does other things; neither half
 * waits. */
struct verb {
	const char *name;
	enum role needs;
	unsigned cost; /* of asking, in requests */
	bool is_long;  /* its answer is made by the writer, one of a user's at a time; it uses no host */
	/* Adds orders to the exchange, or notes in its request what is wrong. All of the client's arguments
	 * are checked here. */
	void (*ask)(struct exchange *exchange, const struct verb_host *host);
	/* Makes JSON of what the engine said. NULL for lack of memory, or with the reason noted. */
	cJSON *(*answer)(struct exchange *exchange, const struct verb_host *host);
};

/* An order more of this exchange, owned by it. What its peer may not see, it filters out. NULL for lack of
 * memory, noted. */
struct order *verb_add_order(struct exchange *exchange, enum order_verb verb);
/* The same with the request's pool and pid as filters. */
struct order *verb_add_filtered_order(struct exchange *exchange, enum order_verb verb);

void verb_take_pool(struct exchange *exchange, struct order *order);
void verb_take_pid(struct exchange *exchange, struct order *order);

/* An object with the one member @value, taken over. NULL for lack of memory (also when @value is NULL). */
cJSON *verb_wrap(const char *name, cJSON *value);

void verb_ask_finish(struct exchange *exchange, const struct verb_host *host);
void verb_ask_status(struct exchange *exchange, const struct verb_host *host);
void verb_ask_targets(struct exchange *exchange, const struct verb_host *host);
void verb_ask_top(struct exchange *exchange, const struct verb_host *host);
void verb_ask_profile(struct exchange *exchange, const struct verb_host *host);
void verb_ask_unit(struct exchange *exchange, const struct verb_host *host);
void verb_ask_units(struct exchange *exchange, const struct verb_host *host);
void verb_ask_metrics(struct exchange *exchange, const struct verb_host *host);
void verb_ask_attach(struct exchange *exchange, const struct verb_host *host);
void verb_ask_detach(struct exchange *exchange, const struct verb_host *host);
void verb_ask_rate(struct exchange *exchange, const struct verb_host *host);
void verb_ask_reset(struct exchange *exchange, const struct verb_host *host);
void verb_ask_suspend(struct exchange *exchange, const struct verb_host *host);
void verb_ask_resume(struct exchange *exchange, const struct verb_host *host);
void verb_ask_reload(struct exchange *exchange, const struct verb_host *host);

cJSON *verb_answer_unit(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_status(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_targets(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_top(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_profile(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_units(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_metrics(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_affected(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_rate(struct exchange *exchange, const struct verb_host *host);
cJSON *verb_answer_reload(struct exchange *exchange, const struct verb_host *host);
