// The adapter to oneDNN. It contains everything that differs between versions 2 and 3; all other
// code uses oneDNN through it.
//
// Descriptors are float32 unless a dtype is given, float32 or bfloat16. Primitive descriptors use
// the caller's scratchpad (unless the attributes say otherwise), so that a plan can put the
// scratchpad into its arena. If oneDNN can't make a descriptor, functions throw Error
// (kUnimplemented). Engine and stream live as long as the process; several threads may use them.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/tensor/layout.h"
#include "framework/tensor/shape.h"
#include "operators/common/channel_order.h"

namespace skiff {

// The first call limits oneDNN to UsedInstructionSet. Throws Error (kFailedPrecondition) if other
// code used oneDNN before.
dnnl::engine& OnednnEngine();
dnnl::stream& OnednnStream();

// Returns whether oneDNN uses AVX-512: the processor has it, and no setting forbids it.
bool OnednnUsesAvx512();
// Returns the version and the number of the best instruction set that oneDNN uses (dnnl::cpu_isa):
// "2.6.3, cpu isa 0xe7".
std::string OnednnVersion();

// Returns a memory descriptor for the logical dims N, C, H, W. `order` applies only to a plain
// layout. Throws Error for a block other than 1, 8, 16.
dnnl::memory::desc OnednnImage(const dnnl::memory::dims& nchw, Layout layout,
                               ChannelOrder order = ChannelOrder::kFirst,
                               DType dtype = DType::kFloat32);
// Returns a row-major descriptor of any rank.
dnnl::memory::desc OnednnPlain(const dnnl::memory::dims& dims, DType dtype = DType::kFloat32);
// Returns a row-major descriptor with the given strides, in elements.
dnnl::memory::desc OnednnStrided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides,
                                 DType dtype = DType::kFloat32);
// Returns a descriptor that leaves the layout to oneDNN; the primitive descriptor then says which
// it is.
dnnl::memory::desc OnednnAny(const dnnl::memory::dims& dims, DType dtype = DType::kFloat32);
dnnl::memory::dims OnednnDims(const Shape& shape);
// Returns the bytes of a descriptor's memory, padding included.
int64_t OnednnBytes(const dnnl::memory::desc& desc);

// Returns whether a primitive is a reference implementation of oneDNN, many times slower than other
// implementations.
bool IsOnednnReference(const dnnl::primitive_desc_base& descriptor);
// Returns whether a primitive multiplies bfloat16 by the processor's instructions for that. Those
// that don't are slower than float32.
bool IsOnednnNativeBf16(const dnnl::primitive_desc_base& descriptor);
// Returns whether a convolution is computed by matrix products, with the images' columns in the
// scratchpad.
bool IsOnednnProduct(const dnnl::primitive_desc_base& descriptor);

// Returns attributes that leave the scratchpad to the caller.
dnnl::primitive_attr OnednnAttributes();
// Appends a multiplication of the result by `factor`.
void AppendOnednnScale(float factor, dnnl::post_ops* post_ops);
// Appends a relu.
void AppendOnednnRelu(dnnl::post_ops* post_ops);

// The windows of a convolution or a pooling. A dilation of 1 means none (oneDNN itself counts from
// 0).
struct OnednnWindow {
  dnnl::memory::dims kernel;  // read by pooling only
  dnnl::memory::dims strides;
  dnnl::memory::dims dilations;  // read by convolution only
  dnnl::memory::dims padding_begin;
  dnnl::memory::dims padding_end;
};

// Convolutions. `algorithm` is convolution_direct or convolution_auto. An empty bias descriptor
// means no bias.
dnnl::convolution_forward::primitive_desc OnednnConvolutionForward(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source, const dnnl::memory::desc& weights,
    const dnnl::memory::desc& bias, const dnnl::memory::desc& destination,
    const OnednnWindow& window, const dnnl::primitive_attr& attributes = OnednnAttributes());
dnnl::convolution_backward_data::primitive_desc OnednnConvolutionBackwardData(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source_gradient,
    const dnnl::memory::desc& weights, const dnnl::memory::desc& destination_gradient,
    const OnednnWindow& window);
dnnl::convolution_backward_weights::primitive_desc OnednnConvolutionBackwardWeights(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source,
    const dnnl::memory::desc& weights_gradient, const dnnl::memory::desc& destination_gradient,
    const OnednnWindow& window);

// Poolings. `algorithm` is pooling_max, pooling_avg_include_padding or pooling_avg_exclude_padding.
// A forward pooling of kind forward_inference needs no workspace.
dnnl::pooling_forward::primitive_desc OnednnPoolingForward(dnnl::prop_kind kind,
                                                           dnnl::algorithm algorithm,
                                                           const dnnl::memory::desc& source,
                                                           const dnnl::memory::desc& destination,
                                                           const OnednnWindow& window);
dnnl::pooling_backward::primitive_desc OnednnPoolingBackward(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source_gradient,
    const dnnl::memory::desc& destination_gradient, const OnednnWindow& window);

// Computes destination = source · weights (+ bias, unless its descriptor is empty).
dnnl::matmul::primitive_desc OnednnMatmul(
    const dnnl::memory::desc& source, const dnnl::memory::desc& weights,
    const dnnl::memory::desc& bias, const dnnl::memory::desc& destination,
    const dnnl::primitive_attr& attributes = OnednnAttributes());

// A primitive with its arguments: assembled once, run many times without allocating. Copies share
// the primitive and the arguments.
class OnednnCall {
 public:
  OnednnCall() = default;
  explicit OnednnCall(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  // Adds an argument, once each. `argument` is a DNNL_ARG_… number.
  void AddArgument(int argument, const dnnl::memory::desc& desc);
  // Sets the address of an argument's data; const data must belong to an input. In oneDNN 2 a new
  // address writes zeros to the padding of the memory; setting the same address again costs
  // nothing.
  void SetData(int argument, const void* data);
  // Runs the primitive. Throws Error if oneDNN reports one.
  void Run() const;

  explicit operator bool() const { return static_cast<bool>(primitive_); }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Returns a call that copies between layouts, with arguments DNNL_ARG_FROM and DNNL_ARG_TO. It
// zeros the padding of the target.
OnednnCall OnednnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

}  // namespace skiff
