// One bug for each sanitizer. If a canary passes under its sanitizer, the
// sanitizer doesn't work: tools/check_sanitizers.sh expects every one to fail.
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

// volatile: the compiler must not see through the bugs.
volatile int g_sink;

void ReadPastTheHeap() {
  int* values = new int[4];
  volatile int index = 4;
  g_sink = values[index];
  delete[] values;
}

void Leak() {
  void* volatile lost = std::malloc(64);
  lost = nullptr;
}

void OverflowAnInt() {
  volatile int largest = INT_MAX;
  g_sink = largest + 1;
}

void Race() {
  int shared = 0;
  std::thread first([&] { ++shared; });
  std::thread second([&] { ++shared; });
  first.join();
  second.join();
  g_sink = shared;
}

}  // namespace

int main() {
  const char* bug = std::getenv("BUG");
  if (bug == nullptr) return 0;
  if (std::strcmp(bug, "heap") == 0) ReadPastTheHeap();
  if (std::strcmp(bug, "leak") == 0) Leak();
  if (std::strcmp(bug, "overflow") == 0) OverflowAnInt();
  if (std::strcmp(bug, "race") == 0) Race();
  return 0;
}
