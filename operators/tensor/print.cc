// print: Out = In, and writes In to the standard output.
//
// Source: Fluid's print, whose format the text has. The gradient is a print of Out@GRAD.
// `print_phase` says which of the two writes: FORWARD, BACKWARD or BOTH. A plan counts its prints
// and stops writing after `first_n`.
#include <cstdio>

#include "framework/op/arguments.h"
#include "framework/op/grad.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/strided_copy.h"
#include "operators/tensor/kernels/tensor_text.h"

namespace skiff {
namespace {

struct PrintSettings {
  std::string name;
  std::string message;
  bool writes = true;  // in this phase
  int64_t first_n = -1;
  int64_t summarize = -1;
  bool shows_name = true;
  bool shows_dtype = true;
  bool shows_shape = true;
  bool shows_layout = true;
  bool shows_lod = true;
};

PrintSettings SettingsOf(const OpContext& context) {
  const std::string& phase = context.Attr<std::string>("print_phase");
  const std::string own_phase = context.Attr<bool>("is_forward") ? "FORWARD" : "BACKWARD";
  return {.name = context.op().Input("In").front(),
          .message = context.Attr<std::string>("message"),
          .writes = phase == "BOTH" || phase == own_phase,
          .first_n = context.IntAttr("first_n"),
          .summarize = context.IntAttr("summarize"),
          .shows_name = context.Attr<bool>("print_tensor_name"),
          .shows_dtype = context.Attr<bool>("print_tensor_type"),
          .shows_shape = context.Attr<bool>("print_tensor_shape"),
          .shows_layout = context.Attr<bool>("print_tensor_layout"),
          .shows_lod = context.Attr<bool>("print_tensor_lod")};
}

void WriteLod(const LoD& lod) {
  std::fputs("  - lod: {", stdout);
  for (size_t level = 0; level < lod.size(); ++level) {
    std::fputs("{", stdout);
    for (size_t i = 0; i < lod[level].size(); ++i) {
      std::printf(i > 0 ? ", %llu" : "%llu", static_cast<unsigned long long>(lod[level][i]));
    }
    std::fputs("}", stdout);
  }
  std::fputs("}\n", stdout);
}

void WriteShape(const Shape& shape) {
  std::fputs("  - shape: [", stdout);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    std::printf(axis > 0 ? ", %lld" : "%lld", static_cast<long long>(shape[axis]));
  }
  std::fputs("]\n", stdout);
}

void WriteTensor(const PrintSettings& settings, const Tensor& tensor) {
  if (settings.shows_name) std::printf("Variable: %s\n", settings.name.c_str());
  if (!settings.message.empty()) std::printf("  - message: %s\n", settings.message.c_str());
  if (settings.shows_lod) WriteLod(tensor.lod());
  std::fputs("  - place: Place(cpu)\n", stdout);
  if (settings.shows_shape) WriteShape(tensor.shape());
  if (settings.shows_layout) std::fputs("  - layout: NCHW\n", stdout);
  if (settings.shows_dtype) {
    const std::string_view dtype = DTypeName(tensor.dtype());
    std::printf("  - dtype: %.*s\n", static_cast<int>(dtype.size()), dtype.data());
  }
  std::fputs("  - data: ", stdout);
  WriteElements(tensor, settings.summarize, stdout);
  std::fputs("\n", stdout);
  std::fflush(stdout);
}

std::unique_ptr<Kernel> PreparePrint(const PrepareContext& context) {
  return MakeKernel([settings = SettingsOf(context), in = In<>(context, "In"),
                     out = Out<>(context, "Out"),
                     printed = int64_t{0}](const KernelContext& run) mutable {
    CopyBytes(in(run), out(run), in.tensor(run).byte_count());
    const bool enough = settings.first_n > 0 && printed >= settings.first_n;
    if (!settings.writes || enough) return;
    ++printed;
    WriteTensor(settings, in.tensor(run));
  });
}

std::vector<Op> PrintGrad(const GradContext& context) {
  Op print("print");
  print.attrs = context.forward().attrs;
  print.SetAttr("is_forward", false);
  print.SetInput("In", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("In"));
  return {std::move(print)};
}

std::vector<AttrDef> PrintAttrs() {
  const auto flag = [](StaticText name, StaticText doc) {
    return AttrDef{.name = name, .type = AttrType::kBool, .default_value = true, .doc = doc};
  };
  return {
      {.name = "first_n", .type = AttrType::kInt, .doc = "How often to write; 0 or less: always."},
      {.name = "message",
       .type = AttrType::kString,
       .doc = "Text written before the tensor; may be empty."},
      {.name = "summarize",
       .type = AttrType::kInt,
       .doc = "How many elements to write; negative: all."},
      flag("print_tensor_name", "Whether to write the name of the variable."),
      flag("print_tensor_type", "Whether to write the dtype."),
      flag("print_tensor_shape", "Whether to write the shape."),
      flag("print_tensor_layout", "Whether to write the layout."),
      flag("print_tensor_lod", "Whether to write the LoD."),
      ChoiceAttr("print_phase", "BOTH", {"FORWARD", "BACKWARD", "BOTH"},
                 "\"FORWARD\", \"BACKWARD\" or \"BOTH\"."),
      flag("is_forward", "Whether this isn't a gradient op.")};
}

}  // namespace

void RegisterPrint(OpRegistry& registry) {
  OpDef def;
  def.type = "print";
  def.doc = "Out = In, and writes In to the standard output.";
  def.inputs = {{.name = "In", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "In."}};
  def.attrs = PrintAttrs();
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "In"); };
  def.precision = Precision::kFollow;
  def.grad = PrintGrad;
  def.in_place = {{"In", "Out"}};
  def.views = {{"In", "Out"}};
  def.has_side_effect = true;
  def.is_on_host = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "print", PreparePrint);
}

}  // namespace skiff
