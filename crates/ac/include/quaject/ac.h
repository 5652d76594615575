/* Asynchronous C: structured concurrency with cooperative tasks on their own stacks. Work that may wait is written as
 * straight-line code, and the enclosing finish block does not end before all tasks started in it.
 *
 *     FINISH_BEGIN(both)
 *         struct page first, second;
 *         ASYNC_CALL(fetch, &first);   // runs immediately, on a stack of its own, until it waits
 *         ASYNC_CALL(fetch, &second);  // so does this one
 *     FINISH_END(both)                 // both have finished here
 *
 * The paper's form is DO_FINISH({ ... }). Variables declared in its braces end before it waits for the tasks: declare
 * what tasks have pointers to before it.
 *
 * A task belongs to the thread that started it and never leaves it; tasks switch only where they wait. C11 and C++17,
 * gcc and clang. This header includes the complete interface except input and output, which are in <quaject/ac/io.h>,
 * messages between threads and processes, in <quaject/ac/ipc.h>, and the names of the 2016 paper, in <quaject/thc.h>.
 *
 *     ac/base.h     what a task, a block and a thread's state hold
 *     ac/switch.h context switches, inlined into the caller
 *     ac/task.h     start, yield, suspend, schedule; tasks by number
 *     ac/finish.h   blocks: open, close, cancel, shield, deadline
 *     ac/body.h     FINISH_BEGIN, DO_FINISH and ASYNC
 *     ac/sync.h     semaphores, locks, condition variables, event counts, sequencers
 */
#ifndef QUAJECT_AC_H
#define QUAJECT_AC_H

#include <quaject/ac/base.h>
#include <quaject/ac/switch.h>
#include <quaject/ac/task.h>
#include <quaject/ac/finish.h>
#include <quaject/ac/body.h>
#include <quaject/ac/sync.h>

#endif
