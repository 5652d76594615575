/* DO_FINISH and ASYNC for C++17: a guard that joins on every exit from its scope, and callables moved onto the task's
 * stack. An exception leaves a task that has never waited through the stack switch, as it would leave a call; that of a
 * task that has waited is stored, cancels the block, so that the other tasks end early, and the first one is rethrown at
 * the end of the block.
 *
 * Each task has exceptions of its own, as each thread has: it may wait inside a `catch`, and in a destructor that runs because of
 * an exception. A task that is started inside a `catch` does not see the exception that is handled there (`throw;`,
 * std::current_exception()): hand it a std::exception_ptr. This holds in every executable that is not linked with
 * --exclude-libs. In one that is, and in a shared library with tasks that is opened by dlopen(), tasks share the
 * exceptions of their thread and must not wait inside a `catch`. */
#ifndef QUAJECT_AC_BODY_HPP
#define QUAJECT_AC_BODY_HPP

#include <exception>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <quaject/ac/finish.h>

namespace qj {
namespace ac {

namespace detail {

template <class F> void run(void *callable) {
    F function(std::move(*static_cast<F *>(callable)));
    std::exception_ptr thrown;
    try {
        function();
        return;
    } catch (...) {
        if (qj_ac__thread.current->parent_sp != nullptr) throw;
        thrown = std::current_exception();
    }
    struct qj_ac_finish *home = qj_ac__thread.current->home;
    if (home->failure == nullptr) home->failure = new std::exception_ptr(std::move(thrown));
    qj_ac_cancel(home);
}

} // namespace detail

/* Runs `function()` as a task of the innermost open block. */
template <class F> inline void async(F function) {
#ifdef QJ_AC_EAGER
    qj_ac_async_eager(detail::run<F>, std::addressof(function));
#else
    qj_ac_async(detail::run<F>, std::addressof(function));
#endif
}

/* Runs `function(arguments...)` as a task; the arguments are copied or moved onto its stack. */
template <class F, class... A> inline void async_call(F function, A &&...arguments) {
    async([function, copies = std::tuple<std::decay_t<A>...>(std::forward<A>(arguments)...)]() mutable {
        std::apply(function, std::move(copies));
    });
}

/* A finish block as a scope. If an exception leaves it, it is cancelled and still waits for its tasks. */
class block {
  public:
    enum kind { ordinary, shielded };

    explicit block(kind wanted = ordinary) : exceptions_(std::uncaught_exceptions()) {
        if (wanted == shielded) {
            qj_ac_finish_begin_shielded(&block_);
        } else {
            qj_ac_finish_begin(&block_);
        }
    }
    block(const block &) = delete;
    block &operator=(const block &) = delete;

    struct qj_ac_finish *get() { return &block_; }

    /* Waits for the tasks; rethrows the exception of the first task that failed. */
    void join() {
        open_ = false;
        qj_ac_finish_end(&block_);
        if (block_.failure != nullptr) {
            std::unique_ptr<std::exception_ptr> failure(static_cast<std::exception_ptr *>(block_.failure));
            std::rethrow_exception(*failure);
        }
    }

    ~block() noexcept(false) {
        if (!open_) return;
        if (std::uncaught_exceptions() == exceptions_) {
            join();
            return;
        }
        qj_ac_cancel(&block_);
        qj_ac_finish_end(&block_);
        delete static_cast<std::exception_ptr *>(block_.failure);
    }

  private:
    friend class guard;

    struct qj_ac_finish block_;
    bool open_ = true;
    int exceptions_;
};

/* Waits for the tasks of a block where its scope is left early: before the variables that are declared above it are
 * destroyed, which would otherwise happen before the block's own destructor runs. An exception cancels the block
 * first. */
class guard {
  public:
    explicit guard(block &guarded) : block_(guarded), exceptions_(std::uncaught_exceptions()) {}
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;

    ~guard() {
        if (!block_.open_) return;
        if (std::uncaught_exceptions() != exceptions_) qj_ac_cancel(&block_.block_);
        qj_ac_join(&block_.block_);
    }

  private:
    block &block_;
    int exceptions_;
};

} // namespace ac
} // namespace qj

#endif
