// The four libunwind functions that Debian's libglog.a calls for its stack
// traces, over libgcc's _Unwind_Backtrace. Debian's libunwind.a is not
// position independent, so it cannot be linked into a PIE or a shared object,
// and libunwind.so.8 is not on every machine a binary is copied to; besides,
// both define _Unwind_*, which belong to libgcc.
#include <unwind.h>

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#define SKIFF_UNW(name) _ULx86_64_##name
#define SKIFF_GETCONTEXT _Ux86_64_getcontext
#elif defined(__aarch64__)
#define SKIFF_UNW(name) _ULaarch64_##name
#define SKIFF_GETCONTEXT _Uaarch64_getcontext
#endif

#ifdef SKIFF_UNW
namespace {
// The state of a walk, stored in the caller's unw_cursor_t, which is at least 127 words: all return
// addresses, collected by init_local at once, since _Unwind_Backtrace can't be paused.
struct Cursor {
  intptr_t next;
  intptr_t count;
  uintptr_t ip[120];
};

_Unwind_Reason_Code Collect(_Unwind_Context* context, void* arg) {
  auto* c = static_cast<Cursor*>(arg);
  if (c->next > 0) {
    --c->next;  // the frame of init_local
    return _URC_NO_REASON;
  }
  if (c->count == 120) return _URC_END_OF_STACK;
  c->ip[c->count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}
}  // namespace

// Weak, so that a real libunwind wins where one is linked.
extern "C" {
__attribute__((weak)) int SKIFF_GETCONTEXT(void*) { return 0; }
__attribute__((weak, noinline)) int SKIFF_UNW(init_local)(void* cursor, void*) {
  auto* c = static_cast<Cursor*>(cursor);
  c->next = 1;
  c->count = 0;
  _Unwind_Backtrace(Collect, c);
  c->next = 0;
  return 0;
}
__attribute__((weak)) int SKIFF_UNW(step)(void* cursor) {
  auto* c = static_cast<Cursor*>(cursor);
  return ++c->next < c->count ? 1 : 0;
}
__attribute__((weak)) int SKIFF_UNW(get_reg)(void* cursor, int, uintptr_t* value) {
  auto* c = static_cast<Cursor*>(cursor);
  if (c->next >= c->count) return -1;
  *value = c->ip[c->next];
  return 0;
}
}  // extern "C"
#endif
