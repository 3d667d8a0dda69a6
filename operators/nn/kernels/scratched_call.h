// A oneDNN primitive in a kernel. The scratchpad is a workspace of the plan, so that running the
// primitive allocates nothing.
#pragma once

#include "framework/op/kernel.h"
#include "operators/common/libraries/onednn.h"

namespace skiff {

// A primitive and the workspace that is its scratchpad.
class ScratchedCall {
 public:
  template <typename Primitive, typename Descriptor>
  static ScratchedCall Make(PrepareContext& context, const Descriptor& descriptor) {
    ScratchedCall call;
    call.call_ = OnednnCall(Primitive(descriptor));
    const dnnl::memory::desc scratchpad = descriptor.scratchpad_desc();
    if (OnednnBytes(scratchpad) > 0) {
      call.workspace_ = context.RequestWorkspace(OnednnBytes(scratchpad));
      call.call_.AddArgument(DNNL_ARG_SCRATCHPAD, scratchpad);
    }
    return call;
  }

  void AddArgument(int argument, const dnnl::memory::desc& desc) {
    call_.AddArgument(argument, desc);
  }
  void SetData(int argument, const void* data) { call_.SetData(argument, data); }
  void Run(const KernelContext& run) {
    if (workspace_ >= 0) call_.SetData(DNNL_ARG_SCRATCHPAD, run.workspace(workspace_));
    call_.Run();
  }

 private:
  OnednnCall call_;
  int workspace_ = -1;
};

}  // namespace skiff
