// Workspaces that a kernel names once, as arguments are named (framework/op/arguments.h): a factory
// requests a workspace, and Run asks for its data.
#pragma once

#include <cstdint>

#include "framework/base/element_count.h"
#include "framework/op/arguments.h"

namespace skiff {

// A matrix of elements of T, for one run. Its contents are undefined when the run begins.
template <typename T>
class Workspace {
 public:
  Workspace(PrepareContext& context, int64_t rows, int64_t columns = 1)
      : index_(context.RequestWorkspace(
            MultiplyCounts(MultiplyCounts(rows, columns), int64_t{sizeof(T)}))) {}

  T* operator()(const KernelContext& run) const { return static_cast<T*>(run.workspace(index_)); }

 private:
  int index_;
};

// An output or, if the op lacks this output, a workspace.
template <typename T>
class OutputOrWorkspace {
 public:
  OutputOrWorkspace(PrepareContext& context, const Out<T>& output, int64_t rows, int64_t columns)
      : output_(output), workspace_(context, output.is_there() ? 0 : rows, columns) {}

  bool is_output() const { return output_.is_there(); }
  T* operator()(const KernelContext& run) const {
    return is_output() ? output_(run) : workspace_(run);
  }

 private:
  Out<T> output_;
  Workspace<T> workspace_;
};

}  // namespace skiff
