// The differences between oneDNN 2 and 3 are in this file only. In version 2, a primitive
// descriptor is made from an operation descriptor; in version 3, from the arguments themselves.
#include "operators/common/libraries/onednn.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr auto kFloat = dnnl::memory::data_type::f32;

dnnl::memory::data_type TypeOf(DType dtype) {
  SKIFF_ENFORCE(dtype == DType::kFloat32 || dtype == DType::kBFloat16, kUnimplemented,
                "descriptors of ", dtype, " for oneDNN, expected float32 or bfloat16");
  return dtype == DType::kFloat32 ? kFloat : dnnl::memory::data_type::bf16;
}

// Returns the result of `create`; turns oneDNN's exceptions into Errors.
template <typename Create>
auto Checked(std::string_view what, const Create& create) {
  try {
    return create();
  } catch (const dnnl::error& error) {
    Throw(ErrorCode::kUnimplemented, "oneDNN has no ", what, " for these arguments: ", error.what(),
          " (status ", static_cast<int>(error.status), ")");
  }
}

// oneDNN counts a dilation from 0.
dnnl::memory::dims MinusOne(dnnl::memory::dims dims) {
  for (auto& dim : dims) --dim;
  return dims;
}

// Returns the best of oneDNN's instruction sets that belongs to one of ours. Below kAvx512Bf16, it
// multiplies no bfloat16.
dnnl::cpu_isa OnednnLimit(InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline:
      return dnnl::cpu_isa::sse41;
    case InstructionSet::kAvx2:
      return dnnl::cpu_isa::avx2;
    case InstructionSet::kAvx512:
      return dnnl::cpu_isa::avx512_core_vnni;
    case InstructionSet::kAvx512Bf16:
      break;
  }
  return dnnl::cpu_isa::avx512_core_bf16;
}

// Limits oneDNN to the used instruction set. This works only before oneDNN first reads its own
// limit.
void LimitInstructionSet() {
  const InstructionSet used = UsedInstructionSet();
  if (used == ProcessorInstructionSet()) return;
  const dnnl::status status = dnnl::set_max_cpu_isa(OnednnLimit(used));
  SKIFF_ENFORCE(status == dnnl::status::success, kFailedPrecondition,
                "oneDNN can't be limited to the instruction set ", InstructionSetName(used),
                " (status ", static_cast<int>(status), ")");
}

}  // namespace

// Engine and stream are never destroyed: kernels of static lifetime may use them at exit.
dnnl::engine& OnednnEngine() {
  static dnnl::engine& engine = *[] {
    LimitInstructionSet();
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

dnnl::stream& OnednnStream() {
  static dnnl::stream& stream = *new dnnl::stream(OnednnEngine());
  return stream;
}

bool OnednnUsesAvx512() {
  OnednnEngine();  // else asking for the instruction set would fix it
  const auto bits = static_cast<uint32_t>(dnnl::get_effective_cpu_isa());
  const auto needed = static_cast<uint32_t>(dnnl::cpu_isa::avx512_core);
  return (bits & needed) == needed;
}

std::string OnednnVersion() {
  OnednnEngine();  // else asking for the instruction set would fix it
  const dnnl_version_t& version = *dnnl_version();
  std::array<char, 8> isa;
  const auto [end, error] = std::to_chars(isa.data(), isa.data() + isa.size(),
                                          static_cast<uint32_t>(dnnl::get_effective_cpu_isa()), 16);
  return StrCat(version.major, ".", version.minor, ".", version.patch, ", cpu isa 0x",
                std::string_view(isa.data(), static_cast<size_t>(end - isa.data())));
}

dnnl::memory::desc OnednnImage(const dnnl::memory::dims& nchw, Layout layout, ChannelOrder order,
                               DType dtype) {
  using Tag = dnnl::memory::format_tag;
  Tag tag = order == ChannelOrder::kFirst ? Tag::nchw : Tag::nhwc;
  if (layout.channel_block == 8) tag = Tag::nChw8c;
  if (layout.channel_block == 16) tag = Tag::nChw16c;
  SKIFF_ENFORCE(layout.is_plain() || layout.channel_block == 8 || layout.channel_block == 16,
                kUnimplemented, "oneDNN has no layout ", layout, ": expected a block of 8 or 16");
  return Checked("image descriptor", [&] { return dnnl::memory::desc(nchw, TypeOf(dtype), tag); });
}

dnnl::memory::desc OnednnPlain(const dnnl::memory::dims& dims, DType dtype) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return OnednnStrided(dims, strides, dtype);
}

dnnl::memory::desc OnednnStrided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides,
                                 DType dtype) {
  return Checked("strided descriptor",
                 [&] { return dnnl::memory::desc(dims, TypeOf(dtype), strides); });
}

dnnl::memory::desc OnednnAny(const dnnl::memory::dims& dims, DType dtype) {
  return Checked("descriptor", [&] {
    return dnnl::memory::desc(dims, TypeOf(dtype), dnnl::memory::format_tag::any);
  });
}

dnnl::memory::dims OnednnDims(const Shape& shape) { return {shape.begin(), shape.end()}; }

int64_t OnednnBytes(const dnnl::memory::desc& desc) {
  return static_cast<int64_t>(desc.get_size());
}

// oneDNN has slow reference code for whatever its fast implementations don't cover.
bool IsOnednnReference(const dnnl::primitive_desc_base& descriptor) {
  return std::string_view(descriptor.impl_info_str()).starts_with("ref");
}

bool IsOnednnNativeBf16(const dnnl::primitive_desc_base& descriptor) {
  const std::string_view name = descriptor.impl_info_str();
  // oneDNN 3 names those that multiply tiles avx512_core_amx.
  return name.find("avx512_core_bf16") != std::string_view::npos ||
         name.find("avx512_core_amx") != std::string_view::npos;
}

bool IsOnednnProduct(const dnnl::primitive_desc_base& descriptor) {
  return std::string_view(descriptor.impl_info_str()).find("gemm") != std::string_view::npos;
}

dnnl::primitive_attr OnednnAttributes() {
  dnnl::primitive_attr attributes;
  // Kernels give the scratchpad a workspace of the plan. Otherwise oneDNN would allocate it.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void AppendOnednnScale(float factor, dnnl::post_ops* post_ops) {
#if DNNL_VERSION_MAJOR >= 3
  // Version 3 dropped the scale argument.
  post_ops->append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0.0f);
#else
  post_ops->append_eltwise(1.0f, dnnl::algorithm::eltwise_linear, factor, 0.0f);
#endif
}

void AppendOnednnRelu(dnnl::post_ops* post_ops) {
#if DNNL_VERSION_MAJOR >= 3
  post_ops->append_eltwise(dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#else
  post_ops->append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
#endif
}

dnnl::convolution_forward::primitive_desc OnednnConvolutionForward(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source, const dnnl::memory::desc& weights,
    const dnnl::memory::desc& bias, const dnnl::memory::desc& destination,
    const OnednnWindow& window, const dnnl::primitive_attr& attributes) {
  // Not forward_inference: the gradients below take a forward descriptor of training.
  const auto kind = dnnl::prop_kind::forward_training;
  const dnnl::memory::dims dilations = MinusOne(window.dilations);
  return Checked("convolution", [&] {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::convolution_forward::primitive_desc(
        OnednnEngine(), kind, algorithm, source, weights, bias, destination, window.strides,
        dilations, window.padding_begin, window.padding_end, attributes);
#else
    return dnnl::convolution_forward::primitive_desc(
        {kind, algorithm, source, weights, bias, destination, window.strides, dilations,
         window.padding_begin, window.padding_end},
        attributes, OnednnEngine());
#endif
  });
}

dnnl::convolution_backward_data::primitive_desc OnednnConvolutionBackwardData(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source_gradient,
    const dnnl::memory::desc& weights, const dnnl::memory::desc& destination_gradient,
    const OnednnWindow& window) {
  // oneDNN makes a gradient's descriptor from that of its forward op.
  const auto forward = OnednnConvolutionForward(algorithm, source_gradient, weights, {},
                                                destination_gradient, window);
  const dnnl::memory::dims dilations = MinusOne(window.dilations);
  return Checked("convolution gradient of data", [&] {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::convolution_backward_data::primitive_desc(
        OnednnEngine(), algorithm, source_gradient, weights, destination_gradient, window.strides,
        dilations, window.padding_begin, window.padding_end, forward, OnednnAttributes());
#else
    return dnnl::convolution_backward_data::primitive_desc(
        {algorithm, source_gradient, weights, destination_gradient, window.strides, dilations,
         window.padding_begin, window.padding_end},
        OnednnAttributes(), OnednnEngine(), forward);
#endif
  });
}

dnnl::convolution_backward_weights::primitive_desc OnednnConvolutionBackwardWeights(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source,
    const dnnl::memory::desc& weights_gradient, const dnnl::memory::desc& destination_gradient,
    const OnednnWindow& window) {
  const auto forward = OnednnConvolutionForward(algorithm, source, weights_gradient, {},
                                                destination_gradient, window);
  const dnnl::memory::dims dilations = MinusOne(window.dilations);
  return Checked("convolution gradient of weights", [&] {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::convolution_backward_weights::primitive_desc(
        OnednnEngine(), algorithm, source, weights_gradient, destination_gradient, window.strides,
        dilations, window.padding_begin, window.padding_end, forward, OnednnAttributes());
#else
    return dnnl::convolution_backward_weights::primitive_desc(
        {algorithm, source, weights_gradient, destination_gradient, window.strides, dilations,
         window.padding_begin, window.padding_end},
        OnednnAttributes(), OnednnEngine(), forward);
#endif
  });
}

dnnl::pooling_forward::primitive_desc OnednnPoolingForward(dnnl::prop_kind kind,
                                                           dnnl::algorithm algorithm,
                                                           const dnnl::memory::desc& source,
                                                           const dnnl::memory::desc& destination,
                                                           const OnednnWindow& window) {
  return Checked("pooling", [&] {
#if DNNL_VERSION_MAJOR >= 3
    // Version 3 asks for a dilation, which counts from 0.
    const dnnl::memory::dims no_dilation(window.kernel.size(), 0);
    return dnnl::pooling_forward::primitive_desc(
        OnednnEngine(), kind, algorithm, source, destination, window.strides, window.kernel,
        no_dilation, window.padding_begin, window.padding_end, OnednnAttributes());
#else
    return dnnl::pooling_forward::primitive_desc(
        {kind, algorithm, source, destination, window.strides, window.kernel, window.padding_begin,
         window.padding_end},
        OnednnAttributes(), OnednnEngine());
#endif
  });
}

dnnl::pooling_backward::primitive_desc OnednnPoolingBackward(
    dnnl::algorithm algorithm, const dnnl::memory::desc& source_gradient,
    const dnnl::memory::desc& destination_gradient, const OnednnWindow& window) {
  const auto forward = OnednnPoolingForward(dnnl::prop_kind::forward_training, algorithm,
                                            source_gradient, destination_gradient, window);
  return Checked("pooling gradient", [&] {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::memory::dims no_dilation(window.kernel.size(), 0);
    return dnnl::pooling_backward::primitive_desc(OnednnEngine(), algorithm, source_gradient,
                                                  destination_gradient, window.strides,
                                                  window.kernel, no_dilation, window.padding_begin,
                                                  window.padding_end, forward, OnednnAttributes());
#else
    return dnnl::pooling_backward::primitive_desc(
        {algorithm, source_gradient, destination_gradient, window.strides, window.kernel,
         window.padding_begin, window.padding_end},
        OnednnAttributes(), OnednnEngine(), forward);
#endif
  });
}

dnnl::matmul::primitive_desc OnednnMatmul(const dnnl::memory::desc& source,
                                          const dnnl::memory::desc& weights,
                                          const dnnl::memory::desc& bias,
                                          const dnnl::memory::desc& destination,
                                          const dnnl::primitive_attr& attributes) {
  return Checked("matrix product", [&] {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::matmul::primitive_desc(OnednnEngine(), source, weights, bias, destination,
                                        attributes);
#else
    return dnnl::matmul::primitive_desc({source, weights, bias, destination}, attributes,
                                        OnednnEngine());
#endif
  });
}

void OnednnCall::AddArgument(int argument, const dnnl::memory::desc& desc) {
  memories_.push_back(dnnl::memory(desc, OnednnEngine(), DNNL_MEMORY_NONE));
  arguments_.push_back({argument, memories_.back().get()});
}

void OnednnCall::SetData(int argument, const void* data) {
  for (const dnnl_exec_arg_t& known : arguments_) {
    if (known.arg != argument) continue;
    void* old_data = nullptr;
    // The same address as in the last run is the usual case, and setting it again takes time.
    if (dnnl_memory_get_data_handle(known.memory, &old_data) == dnnl_success && old_data == data)
      return;
    const dnnl_status_t status = dnnl_memory_set_data_handle(known.memory, const_cast<void*>(data));
    SKIFF_ENFORCE(status == dnnl_success, kInvalidArgument,
                  "oneDNN refuses the data of its argument ", argument, " (status ", status, ")");
    return;
  }
  Throw(ErrorCode::kInvalidArgument, "oneDNN primitive has no argument ", argument);
}

void OnednnCall::Run() const {
  // primitive::execute would copy the arguments into a new vector each time.
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), OnednnStream().get(),
                             static_cast<int>(arguments_.size()), arguments_.data());
  SKIFF_ENFORCE(status == dnnl_success, kFailedPrecondition,
                "oneDNN could not run a primitive (status ", status, ")");
}

OnednnCall OnednnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const auto descriptor = Checked("reorder", [&] {
    return dnnl::reorder::primitive_desc(OnednnEngine(), from, OnednnEngine(), to);
  });
  OnednnCall call{dnnl::reorder(descriptor)};
  call.AddArgument(DNNL_ARG_FROM, from);
  call.AddArgument(DNNL_ARG_TO, to);
  return call;
}

}  // namespace skiff
