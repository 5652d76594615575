/* guard.h: steps of a program that can be left in the middle after a signal, for programs that compute endlessly. Knows
 * no drivers: the caller handles the messages that the step has sent. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef QUAJECT_GUARD_H
#define QUAJECT_GUARD_H

#include "quaject/esp.h"

/* In addition to the values of esp_status: the step was left. Its messages are in the sinks; the state is invalid, and
 * no further step may be taken. */
enum { QJ_LEFT = 100 };

/* Takes a step of the program. All steps are taken by one thread. */
int qj_take_step(const esp_library *program, void *state, const esp_source *sources, esp_output_head *output, esp_time now);

/* Leaves the step that is being taken, or the next one; an extern function returns first. May be called from any thread
 * and any signal handler after the first step. */
void qj_leave_step(void);

#endif
