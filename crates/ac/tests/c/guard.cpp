// FINISH_GUARD: objects of a block are destroyed after its tasks have ended, on every way out of it; and what cancels a
// block in C++.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <quaject/ac.h>

#define CHECK(x) ((x) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), std::abort()))

// Says when it is destroyed, and overwrites itself.
struct object {
    explicit object(int value) : values(50, value) { alive++; }
    ~object() {
        for (int &value : values) value = -1;
        alive--;
    }
    object(const object &) = delete;
    std::vector<int> values;
    static int alive;
};
int object::alive;

static int ran, canceled;
static void looks(const object *seen, int want) {
    for (int turn = 0; turn < 3; turn++) {
        if (qj_ac_yield() == QJ_AC_CANCELED) canceled++;
        for (int value : seen->values) CHECK(value == want);
    }
    ran++;
}

static int returns(bool early) {
    FINISH_BEGIN(outer)
        object first(3);
        FINISH_GUARD(outer);
        ASYNC_CALL(looks, &first, 3);
        FINISH_BEGIN_NX(inner)
            object second(4);
            std::unique_ptr<object> third(new object(5));
            FINISH_GUARD(inner);
            ASYNC_CALL(looks, &second, 4);
            ASYNC_CALL(looks, third.get(), 5);
            if (early) return object::alive;
        FINISH_END(inner)
        CHECK(object::alive == 1 && ran >= 2);
    FINISH_END(outer)
    return object::alive;
}

static int loops() {
    int turns = 0;
    for (int i = 0; i < 10; i++) {
        FINISH_BEGIN(block)
            object local(i);
            FINISH_GUARD(block);
            ASYNC_CALL(looks, &local, i);
            if (i % 2 == 0) continue;
            if (i == 7) break;
        FINISH_END(block)
        turns++;
    }
    return turns;
}

static void jumps() {
    FINISH_BEGIN(block)
        object local(6);
        FINISH_GUARD(block);
        ASYNC_CALL(looks, &local, 6);
        if (object::alive == 1) goto out;
        CHECK(false);
    FINISH_END(block)
out:
    CHECK(object::alive == 0);
}

// An exception of the body cancels the tasks, which still see the objects; so does that of a task, at the end.
static void throws(bool in_body, bool in_task) {
    FINISH_BEGIN(block)
        object local(7);
        FINISH_GUARD(block);
        ASYNC_CALL(looks, &local, 7);
        ASYNC({
            qj_ac_yield();
            if (in_task) throw std::runtime_error("task");
        });
        if (in_body) throw std::runtime_error("body");
    FINISH_END(block)
}
static std::string_view what_is_thrown(bool in_body, bool in_task) {
    static char text[8];
    try {
        throws(in_body, in_task);
        return "nothing";
    } catch (const std::runtime_error &error) {
        std::snprintf(text, sizeof text, "%s", error.what());
        return text;
    }
}

// A block inside the destructor of an object that is destroyed because of an exception.
struct works_at_its_end {
    ~works_at_its_end() {
        FINISH_BEGIN(block)
            object local(8);
            FINISH_GUARD(block);
            ASYNC_CALL(looks, &local, 8);
        FINISH_END(block)
    }
};

static int woken, shielded;
static void cancels() {
    FINISH_BEGIN(block)
        FINISH_GUARD(block);
        for (int i = 0; i < 3; i++) ASYNC({ woken += qj_ac_sleep(3600000000000) == QJ_AC_CANCELED; });
        ASYNC({
            DO_FINISH_NX({ shielded = qj_ac_sleep(1000); });
            CHECK(shielded == 0 && qj_ac_is_canceled());
        });
        ASYNC({
            qj_ac_yield();
            CANCEL(block);
        });
    FINISH_END(block)
    CHECK(woken == 3);
    FINISH_BEGIN(timed)
        qj_ac_deadline(timed, 1000000);
        ASYNC({ woken += qj_ac_sleep(3600000000000) == QJ_AC_CANCELED; });
        qj_ac_join(timed);
        CHECK(qj_ac_expired(timed));
    FINISH_END(timed)
    CHECK(woken == 4);
}
// The first exception ends the siblings, and is the one that is thrown.
static int siblings() {
    woken = 0;
    try {
        FINISH_BEGIN(block)
            FINISH_GUARD(block);
            for (int i = 0; i < 3; i++) ASYNC({ woken += qj_ac_sleep(3600000000000) == QJ_AC_CANCELED; });
            for (int i = 0; i < 2; i++) {
                ASYNC({
                    qj_ac_yield();
                    throw i;
                });
            }
        FINISH_END(block)
    } catch (int which) {
        CHECK(which == 0);
        return woken;
    }
    return -1;
}

int main() {
    CHECK(returns(true) == 3 && ran == 3 && object::alive == 0);
    ran = 0;
    CHECK(returns(false) == 0 && ran == 3);
    ran = 0;
    CHECK(loops() == 3 && ran == 8 && object::alive == 0);
    jumps();
    CHECK(ran == 9 && canceled == 0);
    CHECK(what_is_thrown(false, false) == "nothing" && canceled == 0);
    CHECK(what_is_thrown(true, false) == "body" && canceled == 3 && object::alive == 0);
    CHECK(what_is_thrown(false, true) == "task" && object::alive == 0);
    CHECK(what_is_thrown(true, true) == "body" && object::alive == 0 && ran == 13);
    try {
        works_at_its_end at_end;
        throw 1;
    } catch (int) {
    }
    CHECK(ran == 14 && object::alive == 0 && std::uncaught_exceptions() == 0);
    cancels();
    CHECK(siblings() == 3);
    std::printf("objects outlive tasks\n");
    return 0;
}
