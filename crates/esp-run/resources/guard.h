/* guard.h: steps of a program that can be left in the middle, when a signal asks for the end and the program computes
 * on and on. Knows nothing of drivers: the caller shows what the step has sent. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef QUAJECT_GUARD_H
#define QUAJECT_GUARD_H

#include "quaject/esp.h"

/* Beside the values of esp_status: the step was left. What it has sent is in the sinks, all else of it is lost, and no
 * other step may follow. */
enum { QJ_LEFT = 100 };

/* Takes a step of the program, in the thread that has taken those before it. */
int qj_take_step(const esp_library *program, void *state, const esp_source *sources, esp_output_head *output, esp_time now);

/* Has the step be left that is being taken or comes next; out of an extern function, when that returns. From any thread
 * and any signal handler, once a step has been taken. */
void qj_leave_step(void);

#endif
