/* guard.c: see guard.h.
 *
 *   a signal, or another thread --> qj_leave_step --SIGURG--> the thread of the steps --siglongjmp--> qj_take_step
 *
 * Generated code calls no library, so that siglongjmp may leave it anywhere. Extern functions may hold locks: a step is
 * left only after they return, in `esp_inside`. The default action of SIGURG is to ignore it. SPDX-License-Identifier:
 * MIT OR Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

static sigjmp_buf step_start;
static volatile sig_atomic_t handler_installed, in_step, leave_requested;
static pthread_t step_thread;
volatile int esp_outside;

static void on_leave_signal(int number)
{
    (void)number;
    /* In this order: qj_take_step sets `in_step` and reads `leave_requested` afterwards. */
    leave_requested = 1;
    if (in_step && !esp_outside) siglongjmp(step_start, 1);
}

void esp_inside(void)
{
    /* In this order, as in `on_leave_signal`. */
    esp_outside = 0;
    if (leave_requested) siglongjmp(step_start, 1);
}

void qj_leave_step(void)
{
    leave_requested = 1;
    if (handler_installed) pthread_kill(step_thread, SIGURG);
}

static void install_handler(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_leave_signal;
    step_thread = pthread_self();
    sigaction(SIGURG, &action, NULL);
    handler_installed = 1;
}

/* Unblocks the signals whose handlers have left a step: saving the mask at every step would cost a system call each. */
static void unblock_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGURG);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

int qj_take_step(const esp_library *program, void *state, const esp_source *sources, esp_output_head *output, esp_time now)
{
    int status = QJ_LEFT;
    if (!handler_installed) install_handler();
    if (sigsetjmp(step_start, 0)) {
        in_step = 0;
        unblock_signals();
        return QJ_LEFT;
    }
    in_step = 1;
    if (!leave_requested) status = program->step(state, sources, output, now);
    in_step = 0;
    return status;
}
