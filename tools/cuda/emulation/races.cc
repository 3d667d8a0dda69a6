#include "tools/cuda/emulation/races.h"

namespace skiff::cuda_emulation {

bool RaceDetector::Fail(Visit before, bool was_write) {
  const std::string what = was_write ? "has written there" : "has read there";
  race_ = before >> kIntervalAt < first_of_block_
              ? "another block " + what + ", and nothing orders blocks"
              : "thread " + std::to_string(ThreadOf(before)) + " of the block " + what +
                    " since the last barrier";
  return false;
}

RaceDetector::Page& RaceDetector::FindPage(uintptr_t page) {
  std::unique_ptr<Page>& words = pages_[page];
  if (words == nullptr) words = std::make_unique<Page>();
  recent_[page % kRecentPages] = {page, words.get()};
  return *words;
}

}  // namespace skiff::cuda_emulation
