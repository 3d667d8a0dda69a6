// The readers of a training that Python makes.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "framework/base/error.h"
#include "framework/training/reader.h"
#include "python_stub/binding.h"

namespace skiff::python {

// A reader that threads of Python share: a second one that comes in meanwhile gets an Error
// (kFailedPrecondition), and so does the iterator of an epoch after the reader has gone elsewhere.
class PythonReader : public training::Reader {
 public:
  void StartEpoch(int64_t epoch) final {
    const Use use(*this);
    Start(epoch);
    ++starts_;
  }
  bool Next(training::Batch* batch) final {
    const Use use(*this);
    return Read(batch);
  }
  void Restore(const training::ReaderState& state) final {
    const Use use(*this);
    GoTo(state);
    ++starts_;
  }
  // The feeds of the last batch whose memory isn't to be written.
  const std::set<std::string>& read_only() const { return read_only_; }

  // Returns how often the reader has gone to an epoch.
  int64_t starts() const { return starts_; }
  // Returns the feeds of the next batch, or nothing after the last one of the epoch. A feed is an
  // array if that tells all of it, otherwise a Tensor. Throws an Error unless the reader is where
  // it was when starts() was `start`. The caller holds the interpreter.
  std::optional<py::dict> NextFeeds(int64_t start);

 protected:
  // As StartEpoch, Next and Restore of Reader.
  virtual void Start(int64_t epoch) = 0;
  virtual bool Read(training::Batch* batch) = 0;
  virtual void GoTo(const training::ReaderState& state) = 0;
  // As Skip.
  virtual int64_t Pass(int64_t count) = 0;

  std::set<std::string> read_only_;

 private:
  class Use {
   public:
    explicit Use(PythonReader& reader) : in_use_(reader.in_use_) {
      SKIFF_ENFORCE(!in_use_.test_and_set(), kFailedPrecondition,
                    "this reader is in use already: expected one thread that uses it");
    }
    ~Use() { in_use_.clear(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::atomic_flag& in_use_;
  };

  int64_t PassOver(int64_t count) final {
    const Use use(*this);
    return Pass(count);
  }

  std::atomic_flag in_use_;
  std::atomic<int64_t> starts_{0};
};

}  // namespace skiff::python
