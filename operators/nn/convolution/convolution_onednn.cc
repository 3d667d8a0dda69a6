// Convolution by oneDNN: float32 or bfloat16, images plain or blocked by 8 or 16. The filter is
// always plain in the scope, where checkpoints find it; a kernel that wants another layout reads a
// derived form.
//
// A kernel first asks oneDNN for an implementation of the images' own layouts, with the filter in
// any layout. Each tensor whose layout the implementation doesn't take goes through a reorder: the
// filter once until it changes (DerivedFilter), images in every run (StagedTensor). The scratchpad
// is a workspace, so a run allocates nothing.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/kernel.h"
#include "operators/common/libraries/onednn.h"
#include "operators/nn/convolution/convolution.h"
#include "operators/nn/convolution/convolution_epilogue.h"
#include "operators/nn/convolution/convolution_geometry.h"
#include "operators/nn/kernels/scratched_call.h"

namespace skiff {
namespace {

using Desc = dnnl::memory::desc;

// A tensor in the layout that a primitive takes: the tensor itself, or a workspace with a reorder.
class StagedTensor {
 public:
  StagedTensor(PrepareContext& context, const Desc& stored, const Desc& wanted, bool is_output) {
    if (stored == wanted) return;
    workspace_ = context.RequestWorkspace(OnednnBytes(wanted));
    reorder_ = is_output ? OnednnReorder(wanted, stored) : OnednnReorder(stored, wanted);
  }

  // Returns the data that the primitive reads.
  const void* Read(const KernelContext& run, const void* data) {
    if (workspace_ < 0) return data;
    void* staged = run.workspace(workspace_);
    Copy(data, staged);
    return staged;
  }
  // Returns where the primitive writes. Finish then brings the result to the tensor.
  void* Target(const KernelContext& run, void* data) const {
    return workspace_ < 0 ? data : run.workspace(workspace_);
  }
  void Finish(const KernelContext& run, void* data) {
    if (workspace_ >= 0) Copy(run.workspace(workspace_), data);
  }

 private:
  void Copy(const void* from, const void* to) {
    reorder_.SetData(DNNL_ARG_FROM, from);
    reorder_.SetData(DNNL_ARG_TO, to);
    reorder_.Run();
  }

  int workspace_ = -1;
  OnednnCall reorder_;
};

// The filter in the layout that a primitive takes, with the epilogue's normalization folded into
// it: a derived form, which the plan keeps and refreshes when the parameters have changed.
class DerivedFilter {
 public:
  DerivedFilter(PrepareContext& context, const Desc& plain, const Desc& wanted,
                const std::optional<ConvolutionEpilogue>& epilogue = {})
      : filter_(context, "Filter") {
    if (plain == wanted && !epilogue) return;
    form_ = context.RequestDerivedForm(
        {.inputs = epilogue ? epilogue->inputs() : std::vector<int>{filter_.index()},
         .bytes = OnednnBytes(wanted),
         .refresh = [reorder = OnednnReorder(plain, wanted), filter = filter_, epilogue](
                        const KernelContext& run, void* derived) mutable {
           std::vector<float> folded;
           if (epilogue) folded = epilogue->FoldFilters(run);
           reorder.SetData(DNNL_ARG_FROM, epilogue ? folded.data() : filter(run));
           reorder.SetData(DNNL_ARG_TO, derived);
           reorder.Run();
         }});
  }

  const void* Read(const KernelContext& run) const {
    return form_ >= 0 ? run.derived(form_) : filter_(run);
  }

 private:
  In<> filter_;
  int form_ = -1;
};

// The layouts of the three tensors of a convolution, and descriptors that leave the layout to
// oneDNN.
struct Descriptors {
  bool is_depthwise = false;
  DType dtype = DType::kFloat32;
  Desc input;
  Desc filter;         // plain
  Desc folded_filter;  // float32: with the normalization of an epilogue
  Desc output;
  Desc any_input;
  Desc any_filter;
  Desc any_output;
};

Descriptors DescriptorsOf(const Convolution& conv, DType dtype, Layout input, Layout output) {
  const Extents& kernel = conv.window.kernel;
  dnnl::memory::dims filter = {conv.output.channels, conv.group_inputs(), kernel[0], kernel[1]};
  // oneDNN has grouped filters as a dim of their own; the elements are in the same order.
  if (conv.groups > 1)
    filter = {conv.groups, conv.group_outputs(), conv.group_inputs(), kernel[0], kernel[1]};
  return {.is_depthwise = conv.groups > 1 && conv.group_inputs() == 1,
          .dtype = dtype,
          .input = OnednnImage(conv.input.Nchw(), input, conv.order, dtype),
          .filter = OnednnPlain(filter, dtype),
          .folded_filter = OnednnPlain(filter),
          .output = OnednnImage(conv.output.Nchw(), output, conv.order, dtype),
          .any_input = OnednnAny(conv.input.Nchw(), dtype),
          .any_filter = OnednnAny(filter, dtype),
          .any_output = OnednnAny(conv.output.Nchw(), dtype)};
}

// Return the descriptors of an op and of both halves of its gradient op.
Descriptors ForwardDescriptors(const OpContext& context, const Convolution& conv) {
  return DescriptorsOf(conv, context.Input("Filter").dtype, context.Input("Input").layout,
                       context.Output("Output").layout);
}
Descriptors DataDescriptors(const OpContext& context, const Convolution& conv) {
  return DescriptorsOf(conv, context.Input("Filter").dtype, context.Output("Input@GRAD").layout,
                       context.Input("Output@GRAD").layout);
}
Descriptors FilterDescriptors(const OpContext& context, const Convolution& conv) {
  return DescriptorsOf(conv, context.Input("Filter").dtype, context.Input("Input").layout,
                       context.Input("Output@GRAD").layout);
}

// Returns whether oneDNN is many times slower with this implementation than with others: reference
// code, a depthwise convolution that is a matrix product of one column for each channel, or one of
// bfloat16 that the processor doesn't multiply.
bool IsSlow(const Descriptors& descs, const dnnl::primitive_desc_base& chosen) {
  if (descs.dtype == DType::kBFloat16) return !IsOnednnNativeBf16(chosen);
  return IsOnednnReference(chosen) || (descs.is_depthwise && IsOnednnProduct(chosen));
}

// Returns the implementation for the tensors' own layouts. If that is a slow one, returns the one
// for layouts of oneDNN's choice unless it is slow, too: it pays for the reorders.
template <typename Make>
auto FastDescriptor(const Descriptors& descs, const Make& make) {
  auto as_stored = make(descs.input, descs.output);
  if (!IsSlow(descs, as_stored)) return as_stored;
  auto free = make(descs.any_input, descs.any_output);
  return IsSlow(descs, free) ? as_stored : free;
}

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

// Returns the attributes of a primitive that adds to the contents of its output, and rectifies, as
// the epilogue says.
dnnl::primitive_attr AttributesFor(const std::optional<ConvolutionEpilogue>& epilogue) {
  dnnl::primitive_attr attributes = OnednnAttributes();
  dnnl::post_ops post_ops;
  if (epilogue && epilogue->addend().is_there()) post_ops.append_sum();
  if (epilogue && epilogue->rectifies()) AppendOnednnRelu(&post_ops);
  attributes.set_post_ops(post_ops);
  return attributes;
}

// Return the implementations of an op and of both halves of its gradient op.
auto ForwardDescriptor(const Descriptors& descs, const Convolution& conv,
                       const std::optional<ConvolutionEpilogue>& epilogue) {
  return FastDescriptor(descs, [&](const Desc& input, const Desc& output) {
    return OnednnConvolutionForward(kAlgorithm, input, descs.any_filter,
                                    epilogue ? OnednnPlain({epilogue->channels()}) : Desc(), output,
                                    conv.window.ForOnednn(), AttributesFor(epilogue));
  });
}
auto DataDescriptor(const Descriptors& descs, const Convolution& conv) {
  return FastDescriptor(descs, [&](const Desc& input, const Desc& output) {
    return OnednnConvolutionBackwardData(kAlgorithm, input, descs.any_filter, output,
                                         conv.window.ForOnednn());
  });
}
auto FilterDescriptor(const Descriptors& descs, const Convolution& conv) {
  return FastDescriptor(descs, [&](const Desc& input, const Desc& output) {
    return OnednnConvolutionBackwardWeights(kAlgorithm, input, descs.any_filter, output,
                                            conv.window.ForOnednn());
  });
}

class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(PrepareContext& context)
      : ForwardKernel(context, ParseConvolution(context)) {}

  void Run(const KernelContext& run) override {
    void* output = output_data_(run);
    void* target = output_.Target(run, output);
    if (addend_) {
      // The primitive adds to its output, so Z must be there first. If the op computes in place, it
      // is.
      const void* addend = epilogue_->addend()(run);
      if (addend != target) {
        addend_.SetData(DNNL_ARG_FROM, addend);
        addend_.SetData(DNNL_ARG_TO, target);
        addend_.Run();
      }
    }
    call_.SetData(DNNL_ARG_SRC, input_.Read(run, input_data_(run)));
    call_.SetData(DNNL_ARG_WEIGHTS, filter_.Read(run));
    if (epilogue_) call_.SetData(DNNL_ARG_BIAS, run.derived(shifts_));
    call_.SetData(DNNL_ARG_DST, target);
    call_.Run(run);
    output_.Finish(run, output);
  }

 private:
  using Chosen = dnnl::convolution_forward::primitive_desc;

  ForwardKernel(PrepareContext& context, const Convolution& conv)
      : ForwardKernel(context, EpilogueOf(context, conv), conv, ForwardDescriptors(context, conv)) {
  }

  ForwardKernel(PrepareContext& context, const std::optional<ConvolutionEpilogue>& epilogue,
                const Convolution& conv, const Descriptors& descs)
      : ForwardKernel(context, epilogue, descs, ForwardDescriptor(descs, conv, epilogue)) {}

  ForwardKernel(PrepareContext& context, const std::optional<ConvolutionEpilogue>& epilogue,
                const Descriptors& descs, const Chosen& chosen)
      : input_data_(context, "Input"),
        output_data_(context, "Output"),
        epilogue_(epilogue),
        input_(context, descs.input, chosen.src_desc(), false),
        filter_(context, epilogue ? descs.folded_filter : descs.filter, chosen.weights_desc(),
                epilogue),
        output_(context, descs.output, chosen.dst_desc(), true),
        call_(ScratchedCall::Make<dnnl::convolution_forward>(context, chosen)) {
    call_.AddArgument(DNNL_ARG_SRC, chosen.src_desc());
    call_.AddArgument(DNNL_ARG_WEIGHTS, chosen.weights_desc());
    call_.AddArgument(DNNL_ARG_DST, chosen.dst_desc());
    if (!epilogue_) return;
    call_.AddArgument(DNNL_ARG_BIAS, chosen.bias_desc());
    shifts_ = epilogue_->RequestShifts(context);
    if (epilogue_->addend().is_there()) addend_ = OnednnReorder(descs.output, chosen.dst_desc());
  }

  In<> input_data_;
  Out<> output_data_;
  std::optional<ConvolutionEpilogue> epilogue_;
  StagedTensor input_;
  DerivedFilter filter_;
  StagedTensor output_;
  ScratchedCall call_;
  int shifts_ = -1;
  OnednnCall addend_;  // takes Z to where the primitive adds to it
};

class BackwardData {
 public:
  BackwardData(PrepareContext& context, const Convolution& conv)
      : BackwardData(context, conv, DataDescriptors(context, conv)) {}

  void Run(const KernelContext& run) {
    void* input_gradient = input_gradient_data_(run);
    const void* output_gradient = output_gradient_data_(run);
    call_.SetData(DNNL_ARG_DIFF_DST, output_gradient_.Read(run, output_gradient));
    call_.SetData(DNNL_ARG_WEIGHTS, filter_.Read(run));
    call_.SetData(DNNL_ARG_DIFF_SRC, input_gradient_.Target(run, input_gradient));
    call_.Run(run);
    input_gradient_.Finish(run, input_gradient);
  }

 private:
  using Chosen = dnnl::convolution_backward_data::primitive_desc;

  BackwardData(PrepareContext& context, const Convolution& conv, const Descriptors& descs)
      : BackwardData(context, descs, DataDescriptor(descs, conv)) {}

  BackwardData(PrepareContext& context, const Descriptors& descs, const Chosen& chosen)
      : input_gradient_data_(context, "Input@GRAD"),
        output_gradient_data_(context, "Output@GRAD"),
        output_gradient_(context, descs.output, chosen.diff_dst_desc(), false),
        filter_(context, descs.filter, chosen.weights_desc()),
        input_gradient_(context, descs.input, chosen.diff_src_desc(), true),
        call_(ScratchedCall::Make<dnnl::convolution_backward_data>(context, chosen)) {
    call_.AddArgument(DNNL_ARG_DIFF_DST, chosen.diff_dst_desc());
    call_.AddArgument(DNNL_ARG_WEIGHTS, chosen.weights_desc());
    call_.AddArgument(DNNL_ARG_DIFF_SRC, chosen.diff_src_desc());
  }

  Out<> input_gradient_data_;
  In<> output_gradient_data_;
  StagedTensor output_gradient_;
  DerivedFilter filter_;
  StagedTensor input_gradient_;
  ScratchedCall call_;
};

class BackwardFilter {
 public:
  BackwardFilter(PrepareContext& context, const Convolution& conv)
      : BackwardFilter(context, conv, FilterDescriptors(context, conv)) {}

  void Run(const KernelContext& run) {
    void* filter_gradient = filter_gradient_data_(run);
    const void* output_gradient = output_gradient_data_(run);
    call_.SetData(DNNL_ARG_SRC, input_.Read(run, input_data_(run)));
    call_.SetData(DNNL_ARG_DIFF_DST, output_gradient_.Read(run, output_gradient));
    call_.SetData(DNNL_ARG_DIFF_WEIGHTS, filter_gradient_.Target(run, filter_gradient));
    call_.Run(run);
    filter_gradient_.Finish(run, filter_gradient);
  }

 private:
  using Chosen = dnnl::convolution_backward_weights::primitive_desc;

  BackwardFilter(PrepareContext& context, const Convolution& conv, const Descriptors& descs)
      : BackwardFilter(context, descs, FilterDescriptor(descs, conv)) {}

  BackwardFilter(PrepareContext& context, const Descriptors& descs, const Chosen& chosen)
      : input_data_(context, "Input"),
        output_gradient_data_(context, "Output@GRAD"),
        filter_gradient_data_(context, "Filter@GRAD"),
        input_(context, descs.input, chosen.src_desc(), false),
        output_gradient_(context, descs.output, chosen.diff_dst_desc(), false),
        filter_gradient_(context, descs.filter, chosen.diff_weights_desc(), true),
        call_(ScratchedCall::Make<dnnl::convolution_backward_weights>(context, chosen)) {
    call_.AddArgument(DNNL_ARG_SRC, chosen.src_desc());
    call_.AddArgument(DNNL_ARG_DIFF_DST, chosen.diff_dst_desc());
    call_.AddArgument(DNNL_ARG_DIFF_WEIGHTS, chosen.diff_weights_desc());
  }

  In<> input_data_;
  In<> output_gradient_data_;
  Out<> filter_gradient_data_;
  StagedTensor input_;
  StagedTensor output_gradient_;
  StagedTensor filter_gradient_;
  ScratchedCall call_;
};

std::unique_ptr<Kernel> PrepareBackward(PrepareContext& context) {
  const Convolution conv = ParseConvolution(context);
  std::optional<BackwardData> data;
  std::optional<BackwardFilter> filter;
  if (context.HasOutput("Input@GRAD")) data.emplace(context, conv);
  if (context.HasOutput("Filter@GRAD")) filter.emplace(context, conv);
  return MakeKernel(
      [data = std::move(data), filter = std::move(filter)](const KernelContext& run) mutable {
        if (data) data->Run(run);
        if (filter) filter->Run(run);
      });
}

bool IsImageLayout(Layout layout, ChannelOrder order) {
  if (layout.is_plain()) return true;
  return order == ChannelOrder::kFirst && (layout.channel_block == 8 || layout.channel_block == 16);
}

bool Accepts(const OpContext& context) {
  const Convolution conv = ParseConvolution(context);
  if (conv.is_empty() || !context.Input("Filter").layout.is_plain()) return false;
  if (!IsImageLayout(context.Input("Input").layout, conv.order)) return false;
  const bool is_gradient = context.def().FindInput("Output@GRAD") != nullptr;
  if (!is_gradient) {
    const Layout output = context.Output("Output").layout;
    const bool adds = ConvolutionEpilogue::IsIn(context) && context.HasInput("Z");
    return IsImageLayout(output, conv.order) && (!adds || context.Input("Z").layout == output);
  }
  if (context.HasOutput("Filter@GRAD") && !context.Output("Filter@GRAD").layout.is_plain())
    return false;
  return IsImageLayout(context.Input("Output@GRAD").layout, conv.order) &&
         (!context.HasOutput("Input@GRAD") ||
          IsImageLayout(context.Output("Input@GRAD").layout, conv.order));
}

// Returns whether an element of the filter meets no pixel of any image: nothing but padding. Then
// oneDNN 2.6 doesn't write its gradient in bfloat16.
bool HasIdleTap(const Convolution& conv) {
  for (size_t axis = 0; axis < conv.window.kernel.size(); ++axis) {
    const auto meets_pixel = [&](int64_t tap, int64_t at) {
      const int64_t pixel = at * conv.window.stride[axis] + tap * conv.window.dilation[axis] -
                            conv.window.pad_begin[axis];
      return pixel >= 0 && pixel < conv.input.size[axis];
    };
    for (int64_t tap = 0; tap < conv.window.kernel[axis]; ++tap) {
      bool is_idle = true;
      for (int64_t at = 0; is_idle && at < conv.output.size[axis]; ++at) {
        is_idle = !meets_pixel(tap, at);
      }
      if (is_idle) return true;
    }
  }
  return false;
}

// Returns whether oneDNN multiplies the convolution's bfloat16 by the processor's instructions.
bool IsNative(const OpContext& context) {
  const Convolution conv = ParseConvolution(context);
  try {
    if (context.def().FindInput("Output@GRAD") == nullptr) {
      const Descriptors descs = ForwardDescriptors(context, conv);
      return IsOnednnNativeBf16(ForwardDescriptor(descs, conv, EpilogueOf(context, conv)));
    }
    return (!context.HasOutput("Input@GRAD") ||
            IsOnednnNativeBf16(DataDescriptor(DataDescriptors(context, conv), conv))) &&
           (!context.HasOutput("Filter@GRAD") ||
            (!HasIdleTap(conv) &&
             IsOnednnNativeBf16(FilterDescriptor(FilterDescriptors(context, conv), conv))));
  } catch (const Error& error) {
    // oneDNN has no implementation at all.
    if (error.code() != ErrorCode::kUnimplemented) throw;
    return false;
  }
}

}  // namespace

void AddOnednnConvolution(OpRegistry& registry, std::string_view type) {
  const auto forward = [](PrepareContext& context) {
    return std::make_unique<ForwardKernel>(context);
  };
  KernelDef candidate = {.name = "onednn", .accepts = Accepts, .is_worthwhile = {}, .priority = 10};
  AddConvolutionKernels(registry, type, candidate, forward, PrepareBackward);
  candidate.name = kNativeHalfKernel;
  candidate.dtype = DType::kBFloat16;
  candidate.needs = InstructionSet::kAvx512Bf16;
  candidate.accepts = [](const OpContext& context) {
    return Accepts(context) && IsNative(context);
  };
  AddConvolutionKernels(registry, type, std::move(candidate), forward, PrepareBackward);
}

}  // namespace skiff
