/* For the stepping tests: kills the process before the store whose number QJ_STEP gives. */
#ifndef __ASSEMBLER__
void qj_test_step(const char *name);
#define QJ_TEST_STEPS
#define QJ_RING_STEP(name) qj_test_step(name)
#endif
