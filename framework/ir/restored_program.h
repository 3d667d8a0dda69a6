// Takes changes of a program back if they end in an Error.
#pragma once

#include <memory>

#include "framework/ir/program.h"

namespace skiff {

// Its destructor gives the program back the ops and variables that it had at construction, unless
// Stay was called. Blocks that the program has got since stay, and so do the addresses of variables
// that are still there. The program must outlive it.
class RestoredProgram {
 public:
  explicit RestoredProgram(Program* program);
  ~RestoredProgram();
  RestoredProgram(const RestoredProgram&) = delete;
  RestoredProgram& operator=(const RestoredProgram&) = delete;

  void Stay() { before_ = nullptr; }

 private:
  Program* program_;
  std::unique_ptr<Program> before_;
};

}  // namespace skiff
