// The one adapter to oneDNN: everything that differs between its versions 2 and 3 is in here.
//
// Descriptors are float32. Primitive descriptors are made with the caller's scratchpad (unless the
// attributes say otherwise), so that a plan can put it into its arena. A descriptor that oneDNN
// can't make is an Error of code kUnimplemented. Engine and stream live as long as the process and
// may be used by several threads.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/tensor/layout.h"
#include "framework/tensor/shape.h"

namespace skiff {

dnnl::engine& OnednnEngine();
dnnl::stream& OnednnStream();

// With the number of the best instruction set that it uses (dnnl::cpu_isa): "2.6.3, cpu isa 0xe7".
std::string OnednnVersion();

// Where a plain image batch has its channels.
enum class ChannelOrder { kFirst, kLast };

// A memory descriptor of the logical dims N, C, H, W. `order` counts only where the layout is
// plain. Error for a block that is none of 1, 8, 16.
dnnl::memory::desc OnednnImage(const dnnl::memory::dims& nchw, Layout layout,
                               ChannelOrder order = ChannelOrder::kFirst);
// Row-major, of any rank.
dnnl::memory::desc OnednnPlain(const dnnl::memory::dims& dims);
// Row-major with given strides, counted in elements.
dnnl::memory::desc OnednnStrided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides);
// The layout is oneDNN's choice: ask the primitive descriptor for it.
dnnl::memory::desc OnednnAny(const dnnl::memory::dims& dims);
dnnl::memory::dims OnednnDims(const Shape& shape);
// Bytes of a descriptor's memory, padding included.
int64_t OnednnBytes(const dnnl::memory::desc& desc);

// Whether a primitive is one of oneDNN's reference implementations, which are many times slower
// than the others.
bool IsOnednnReference(const dnnl::primitive_desc_base& descriptor);

// Attributes with the scratchpad at the caller.
dnnl::primitive_attr OnednnAttributes();
// Multiplies the result by `factor`, before the post-operations that are appended later.
void AppendOnednnScale(float factor, dnnl::post_ops* post_ops);
// Puts 0 in the place of what is less.
void AppendOnednnRelu(dnnl::post_ops* post_ops);

// Windows of a convolution or a pooling. A dilation of 1 is none (oneDNN itself counts from 0).
struct OnednnWindow {
  dnnl::memory::dims kernel;  // read by pooling only
  dnnl::memory::dims strides;
  dnnl::memory::dims dilations;  // read by convolution only
  dnnl::memory::dims padding_begin;
  dnnl::memory::dims padding_end;
};

// Convolutions. `algorithm` is convolution_direct or convolution_auto; an empty descriptor of the
// bias is none.
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

// `algorithm` is pooling_max, pooling_avg_include_padding or pooling_avg_exclude_padding. Forward
// of kind forward_inference leaves no workspace behind.
dnnl::pooling_forward::primitive_desc OnednnPoolingForward(dnnl::prop_kind kind,
                                                           dnnl::algorithm algorithm,
                                                           const dnnl::memory::desc& source,
                                                           const dnnl::memory::desc& destination,
                                                           const OnednnWindow& window);
dnnl::pooling_backward::primitive_desc OnednnPoolingBackward(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source_gradient,
    const dnnl::memory::desc& destination_gradient, const OnednnWindow& window);

// destination = source · weights (+ bias, unless its descriptor is empty).
dnnl::matmul::primitive_desc OnednnMatmul(
    const dnnl::memory::desc& source, const dnnl::memory::desc& weights,
    const dnnl::memory::desc& bias, const dnnl::memory::desc& destination,
    const dnnl::primitive_attr& attributes = OnednnAttributes());

// A primitive with its arguments: put together once, run many times without allocating. Copies
// share the primitive and the arguments.
class OnednnCall {
 public:
  OnednnCall() = default;
  explicit OnednnCall(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  // Each argument once. `argument` is a DNNL_ARG_… number.
  void AddArgument(int argument, const dnnl::memory::desc& desc);
  // The data of an argument; a constant one must be an input. In oneDNN 2 a new address makes it
  // write zeros to the padding of the memory, so the same address again costs nothing.
  void SetData(int argument, const void* data);
  // Error if oneDNN reports one.
  void Run() const;

  explicit operator bool() const { return static_cast<bool>(primitive_); }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Copies between layouts: arguments DNNL_ARG_FROM and DNNL_ARG_TO. Padding of the target becomes
// zero.
OnednnCall OnednnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

}  // namespace skiff
