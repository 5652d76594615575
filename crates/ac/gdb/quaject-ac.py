"""Tasks of Asynchronous C in gdb:  (gdb) source quaject-ac.py

    qj-tasks        lists the tasks of the selected thread: number, state, function that waits, name
    qj-tasks bt     the same with a backtrace of each
    qj-task N       the backtrace of task N

A task that waits has left its registers on its stack (quaject/ac/switch.h draws how); they are put in the place of the
thread's for the time of a backtrace, so the process must be live, not a core. x86-64.
"""

import gdb

# The bits of `slow` with which every context is in `queued_sp` (QJ_AC_SLOW_INSTRUMENTED).
INSTRUMENTED = 0x3E

REGISTERS = ("rip", "rsp", "rbp", "rbx", "r12", "r13", "r14", "r15")


def runtime():
    return gdb.parse_and_eval("&qj_ac__thread")


def address(value):
    return int(value.cast(gdb.lookup_type("unsigned long")))


def word(at):
    pointer = gdb.lookup_type("unsigned long").pointer()
    return int(gdb.Value(at).cast(pointer).dereference())


def context(sp):
    """The registers of a saved context, as it was when it called."""
    pc = word(sp)
    # gdb takes the names of assembly for Ada's, and prints a dot for the two underscores.
    symbol = gdb.execute("info symbol %d" % pc, to_string=True).replace(".", "__", 1)
    if symbol.startswith("qj_ac__resume"):
        base = sp + 8
    elif symbol.startswith("qj_ac__task_base"):
        return context(sp + 16)
    elif symbol.startswith(("qj_ac__detach_context", "qj_ac__resume_parent")):
        return context(sp + 8)
    else:
        return {"rip": pc, "rbp": word(sp + 8), "rsp": sp + 160}
    saved = {name: word(base + 8 * i) for i, name in enumerate(("r15", "r14", "r13", "r12", "rbx", "rbp"))}
    saved.update(rip=word(base + 48), rsp=base + 56)
    return saved


def free_stacks(state):
    free = set()
    task = state["spare"]
    if address(task) == address(state["current"]) != 0:
        task = task["next"]
    while address(task) != 0:
        free.add(address(task))
        task = task["next"]
    return free


def at_end(task):
    """Whether the task waits for the end of a block."""
    return address(task["finish"]) != 0 and address(task["finish"]["waiter"]) == address(task)


def tasks():
    """(number, state, context or None, name) of every task of the selected thread."""
    state = runtime().dereference()
    current = address(state["current"])
    free = free_stacks(state)
    below = {}  # a task whose frames go on below its child's: the record of the child is its context
    found = []
    task = state["all"]
    every = [state["root"].address]
    while address(task) != 0:
        if address(task) not in free and not int(task["flags"]) & 1:
            every.append(task)
        task = task["all_next"]
    for task in every:
        if int(task["number"]) != 0 and address(task["parent_sp"]) != 0:
            below[address(task["parent"])] = address(task["parent_sp"])
    for task in sorted(every, key=lambda task: int(task["number"])):
        name = task["name"].string() if address(task["name"]) != 0 else ""
        if address(task) == current:
            found.append((int(task["number"]), "runs", None, name))
        elif address(task["sp"]) != 0:
            found.append((int(task["number"]), "waits", context(address(task["sp"])), name))
        elif address(task["prev"]) != 0:
            found.append((int(task["number"]), "runnable", context(address(task["queued_sp"])), name))
        elif address(task) in below:
            found.append((int(task["number"]), "called", context(below[address(task)]), name))
        elif at_end(task) or int(state["slow"]) & INSTRUMENTED != 0 and address(task["queued_sp"]) != 0:
            found.append((int(task["number"]), "waits", context(address(task["queued_sp"])), name))
    return found


def with_registers(registers, action):
    if registers is None:
        return action()
    gdb.execute("select-frame level 0")
    before = {name: int(gdb.parse_and_eval("(unsigned long)$" + name)) for name in REGISTERS}
    try:
        for name, value in registers.items():
            gdb.execute("set $%s = %d" % (name, value))
        return action()
    finally:
        for name, value in before.items():
            gdb.execute("set $%s = %d" % (name, value))


def backtrace():
    return gdb.execute("bt 20", to_string=True)


def place(registers):
    """The innermost function that is the program's."""

    def find():
        frame = gdb.newest_frame()
        while frame is not None:
            name = frame.name()
            file = frame.find_sal().symtab
            ours = file is not None and "/src/c/" in file.fullname()
            if name is not None and not name.startswith("qj_ac") and not ours:
                return name
            frame = frame.older()
        return "?"

    return with_registers(registers, find)


class Tasks(gdb.Command):
    """List the tasks of the selected thread; `qj-tasks bt` with backtraces."""

    def __init__(self):
        super().__init__("qj-tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for number, state, registers, name in tasks():
            print("%6s  %-8s  in %s%s" % (number or "root", state, place(registers), "  " + name if name else ""))
            if argument.strip() == "bt":
                print(with_registers(registers, backtrace))


class Task(gdb.Command):
    """Backtrace of one task: qj-task NUMBER (0 is the thread's own stack)."""

    def __init__(self):
        super().__init__("qj-task", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for number, state, registers, name in tasks():
            if str(number) == argument.strip():
                print(with_registers(registers, backtrace))
                return
        raise gdb.GdbError("no task %s; `qj-tasks` lists them" % argument)


Tasks()
Task()
