/* guard.c: see guard.h.
 *
 *   a signal, or another thread --> qj_leave_step --SIGURG--> the thread of the steps --siglongjmp--> qj_take_step
 *
 * Generated code calls no library, so it may be left anywhere, but for extern functions, which may hold locks: those are
 * left behind, in `esp_inside`. SIGURG is one that nobody notices who does not ask for it.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

static sigjmp_buf before;
static volatile sig_atomic_t listening, in_step, asked;
static pthread_t runner;
volatile int esp_outside;

static void leave(int number)
{
    (void)number;
    /* In this order: a step that begins sets `in_step` and looks at `asked` then. */
    asked = 1;
    if (in_step && !esp_outside) siglongjmp(before, 1);
}

void esp_inside(void)
{
    /* In this order: likewise. */
    esp_outside = 0;
    if (asked) siglongjmp(before, 1);
}

void qj_leave_step(void)
{
    asked = 1;
    if (listening) pthread_kill(runner, SIGURG);
}

static void listen(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = leave;
    runner = pthread_self();
    sigaction(SIGURG, &action, NULL);
    listening = 1;
}

/* The signals in whose handlers the step was left, which stay blocked otherwise: to keep the mask with every step would be
 * a system call more for each. */
static void unblock(void)
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
    if (!listening) listen();
    if (sigsetjmp(before, 0)) {
        in_step = 0;
        unblock();
        return QJ_LEFT;
    }
    in_step = 1;
    if (!asked) status = program->step(state, sources, output, now);
    in_step = 0;
    return status;
}
