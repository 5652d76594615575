/* Figure 1 of the paper, exactly as printed, and a program that calls it with both kinds of storage. */
#define _DEFAULT_SOURCE /* for MAP_ANONYMOUS */
#include <quaject/vcode.h>

typedef int (*iptr)(int);
/* Called at runtime to create a function which returns its argument + 1. */
iptr mkplus1(struct v_code *ip) {
  v_reg arg[1];
  /* Begin code generation. The type string ("%i") indicates that this routine takes a single integer (i)
   argument; the register to hold this argument is returned in arg[0]. V_LEAF indicates that this
   function is a leaf procedure. ip is a pointer to storage to hold the generated code. */
   v_lambda("%i", arg, V_LEAF, ip);
   /* Add the argument register to 1. */
   v_addii(arg[0], arg[0], 1); /* ADD Integer Immediate */
   /* Return the result. */
   v_reti(arg[0]);             /* RETurn Integer */
   /* End code generation. v_end links the generated code and performs
     cleanup. It then returns a pointer to the final code. */
   return (iptr)v_end();
}

/* Writes past the end of its storage, unless that is an error. */
static void *too_long(struct v_code *ip) {
  v_reg arg[1];
  v_lambda("%i", arg, V_LEAF, ip);
  for (int i = 0; i < 100000; i++) v_addii(arg[0], arg[0], 1);
  v_reti(arg[0]);
  return v_end();
}

static void *calls_in_leaf(struct v_code *ip) {
  v_reg arg[1];
  v_lambda("%p", arg, V_LEAF, ip);
  v_jalr(arg[0]);
  v_retv();
  return v_end();
}

static void *bad_types(struct v_code *ip) {
  v_reg arg[1];
  v_lambda("%q", arg, V_LEAF, ip);
  v_retv();
  return v_end();
}

/* long sum(long n): a loop, labels, getreg, a local variable, hard-coded names. */
static void *make_sum(struct v_code *ip) {
  v_reg arg[1], sum;
  v_variable copy;
  v_label again, done;
  v_lambda("%l", arg, V_LEAF, ip);
  if (!v_getreg(&sum, V_TEMP)) return 0;
  copy = v_local('l');
  again = v_genlabel();
  done = v_genlabel();
  v_setl(sum, 0);
  v_label(again);
  v_bleli(arg[0], 0, done);
  v_addl(sum, sum, arg[0]);
  v_subli(arg[0], arg[0], 1);
  v_j(again);
  v_label(done);
  v_stl_local(sum, copy);
  v_setl(sum, 0);
  v_ldl_local(sum, copy);
  v_retl(sum);
  return v_end();
}

int main(void) {
  struct v_code *code = v_code_new(1000);
  void *plain = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  iptr plus1 = mkplus1(code);
  iptr other = mkplus1((struct v_code *)plain);
  if (!plus1 || plus1(41) != 42) return 1;
  if (!other || other(-1) != 0) return 2;
  if (make_sum(code) == 0) return 3;
  if (((long (*)(long))make_sum(code))(100) != 5050) return 4;
  if (too_long(code) || v_error() != QJV_ERROR_OVERFLOW) return 5;
  if (calls_in_leaf(code) || v_error() != QJV_ERROR_CALL_IN_LEAF) return 6;
  if (bad_types(code) || v_error() != QJV_ERROR_SIGNATURE) return 7;
  v_code_free(code);
  return 0;
}
