#include "tests/harness/op_checks.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "tests/harness/instruction_set.h"
#include "tests/harness/prepared_op.h"
#include "tests/harness/thread_count.h"
#include "tests/harness/tolerance.h"
#include "tests/harness/wider_inputs.h"

namespace skiff::harness {
namespace {

// Two patterns that fill memory before a run, as leftovers of other values would. The first is
// not-a-number for floats. A kernel that reads memory before it writes it gives different results
// with the two.
constexpr unsigned char kPoison = 0xFF;
constexpr unsigned char kOtherPoison = 0xA5;

// Hostile data for inputs: zeros, huge numbers, -1 or not-a-number.
constexpr unsigned char kHostileBytes[] = {0x00, 0x7F, 0xFF};

// Kernels whose sums may be grouped by the number of threads: these candidates, and the float32
// products of these ops, which oneDNN computes. In all others, the number of threads must change no
// bit.
constexpr std::string_view kGroupingCandidates[] = {"onednn", "winograd"};
constexpr std::string_view kOpsOfProducts[] = {"addmm",
                                               "bmm",
                                               "conv2d_transpose",
                                               "conv3d",
                                               "conv3d_transpose",
                                               "depthwise_conv2d_transpose",
                                               "linear",
                                               "matmul",
                                               "matmul_v2",
                                               "mul"};

bool MayGroupByThreads(std::string_view type, std::string_view candidate, DType dtype) {
  if (std::ranges::count(kGroupingCandidates, candidate) > 0) return true;
  if (type.ends_with("_grad")) type.remove_suffix(std::string_view("_grad").size());
  // oneDNN's, too.
  if (candidate == kNativeHalfKernel && type.find("conv2d") != type.npos) return true;
  return dtype == DType::kFloat32 && std::ranges::count(kOpsOfProducts, type) > 0;
}

// With more layout variables, only the variant with all of them blocked is tried, since the number
// of variants is 2 to the number of variables.
constexpr size_t kMaxLayoutVariables = 5;

using Layouts = std::map<std::string, Layout>;

struct Variant {
  std::string candidate;
  Layouts layouts;
  int threads = 1;
};

// Runs an op in all variants: kernel candidates times layouts times numbers of threads, and in each
// variant the perturbations that must not change the result.
class OpChecker {
 public:
  OpChecker(const OpCheck& check, const RunnerOptions& options, CaseReport* report)
      : check_(check),
        options_(options),
        report_(report),
        def_(check.registry.Get(check.op.type)),
        context_(ContextOf(def_, check.op, check.inputs)) {}

  void CheckShapes() {
    const std::vector<std::string> names = OutputOrder(def_, check_.op);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto it = check_.expected.find(names[i]);
      if (it == check_.expected.end() || def_.data_dependent_shape) continue;
      const TensorMeta& meta = context_.outputs()[i];
      const Array& expected = it->second;
      if (meta.is_selected_rows() != expected.is_selected_rows() ||
          (meta.is_selected_rows() && meta.height() != expected.height)) {
        Fail("", StrCat(names[i], ": the shape rule says ", meta.layout, ", expected a height of ",
                        expected.height));
      }
      if (!(meta.shape == expected.shape)) {
        Fail("",
             StrCat(names[i], ": the shape rule says ", meta.shape, ", expected ", expected.shape));
      }
      const bool keeps_float32 =
          IsHalf(check_.dtype) && KeepsFloat32(def_.outputs, check_.op.outputs, names[i]);
      const DType dtype = keeps_float32 ? DType::kFloat32 : DTypeIn(expected, check_.dtype);
      if (meta.dtype != dtype && (expected.fixed_dtype || IsFloat(meta.dtype))) {
        Fail("", StrCat(names[i], ": the shape rule says ", meta.dtype, ", expected ", dtype));
      }
    }
  }

  // While a program is built, the batch size is unknown.
  void CheckUnknownDims() {
    const std::vector<TensorMeta> known(context_.inputs().begin(), context_.inputs().end());
    std::vector<TensorMeta> all_unknown = known;
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].shape.rank() == 0) continue;
      std::vector<TensorMeta> one_unknown = known;
      one_unknown[i].shape[0] = -1;
      all_unknown[i].shape[0] = -1;
      CheckInference(one_unknown, StrCat("with dim 0 of input ", i, " unknown"));
    }
    CheckInference(all_unknown, "with dim 0 of every input unknown");
    // As while a program is built.
    std::vector<TensorMeta> no_contents = known;
    for (TensorMeta& meta : no_contents) meta.contents = nullptr;
    CheckInference(no_contents, "without the contents of inputs");
  }

  void CheckKernels() {
    bool any_plain = false;
    for (const Layouts& layouts : LayoutVariants()) {
      for (const std::string& candidate : Candidates(layouts)) {
        any_plain = any_plain || layouts.empty();
        if (!options_.choose_only) {
          CheckCandidate(candidate, layouts);
        } else if (options_.row_kernels != nullptr && layouts.empty()) {
          NoteRowKernel(candidate);
        }
      }
    }
    // Not every op has kernels for every device. Half runs widened where no kernel takes it.
    const bool needs_kernel = options_.place.is_cpu() && !IsHalf(check_.dtype);
    if (!any_plain && needs_kernel) Fail("", "no kernel accepts plain layouts");
    if (options_.every_instruction_set && options_.place.is_cpu()) CheckOtherInstructionSets();
  }

 private:
  void Fail(const std::string& where, const std::string& what) {
    report_->failures.push_back(StrCat(check_.label, where, ": ", what));
  }

  // Calls `body`; an exception is a failure.
  template <typename Body>
  void Guarded(const std::string& where, const Body& body) {
    try {
      body();
    } catch (const std::exception& error) {
      Fail(where, StrCat("threw: ", error.what()));
    }
  }

  void CheckInference(const std::vector<TensorMeta>& inputs, const std::string& what) {
    Guarded(" " + what, [&] {
      const std::vector<TensorMeta> outputs = InferOutputMetas(def_, check_.op, inputs);
      const std::vector<std::string> names = OutputOrder(def_, check_.op);
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (names[i] == kEmptyVarName || def_.data_dependent_shape) continue;
        const Shape& found = outputs[i].shape;
        const Shape& real = context_.outputs()[i].shape;
        const bool fits = std::equal(found.begin(), found.end(), real.begin(), real.end(),
                                     [](int64_t a, int64_t b) { return a == -1 || a == b; });
        if (!fits) Fail(" " + what, StrCat(names[i], ": inferred ", found, ", really ", real));
      }
    });
  }

  std::vector<std::string> Candidates(const Layouts& layouts) {
    const OpContext context = ContextOf(def_, check_.op, check_.inputs, layouts, options_.place);
    std::vector<std::string> candidates;
    for (const KernelDef& kernel : check_.registry.Kernels(def_.type)) {
      if (kernel.place != options_.place.kind) continue;
      if (std::count(candidates.begin(), candidates.end(), kernel.name) > 0) continue;
      if (check_.registry.FindKernel(context, kernel.name) == nullptr) continue;
      candidates.push_back(kernel.name);
      report_->kernels.insert(KernelName(kernel.name));
    }
    return candidates;
  }

  std::string KernelName(const std::string& candidate) const {
    return StrCat(def_.type, "/", candidate, "/", OpRegistry::KernelDType(context_));
  }

  // Returns whether the candidate, prepared for the inputs, takes fewer rows than these.
  bool AcceptsFewerRows(const std::string& candidate, const NamedTensors& inputs) const {
    const OpContext context = ContextOf(def_, check_.op, inputs, {}, options_.place);
    const KernelDef* kernel = check_.registry.FindKernel(context, candidate);
    if (kernel == nullptr) return false;
    PrepareContext prepare(check_.op, def_, {context.inputs().begin(), context.inputs().end()},
                           {context.outputs().begin(), context.outputs().end()}, options_.place);
    prepare.set_rows_vary(true);
    return kernel->prepare(prepare)->AcceptsFewerRows();
  }

  void NoteRowKernel(const std::string& candidate) {
    const std::string name = KernelName(candidate);
    RowKernels& kernels = *options_.row_kernels;
    if (kernels.checked.contains(name)) return;
    if (AcceptsFewerRows(candidate, check_.inputs)) kernels.all.insert(name);
    for (const WiderInputs& wide : InputsWithMoreRows(def_, check_.op, check_.inputs)) {
      if (!AcceptsFewerRows(candidate, wide.inputs)) continue;
      kernels.all.insert(name);
      kernels.checked.insert(name);
      return;
    }
  }

  // Returns the variables that may be blocked.
  std::vector<std::string> LayoutVariables() const {
    std::vector<std::string> variables;
    std::vector<Shape> shapes;
    const auto add = [&](const std::vector<std::string>& names, const TensorMeta* metas) {
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == kEmptyVarName || metas[i].shape.rank() < 2) continue;
        if (std::count(variables.begin(), variables.end(), names[i]) > 0) continue;
        variables.push_back(names[i]);
        shapes.push_back(metas[i].shape);
      }
    };
    for (const StaticText slot : def_.layout_slots) {
      const bool is_input = def_.FindInput(slot) != nullptr;
      const std::vector<std::string>& names =
          is_input ? check_.op.Input(slot) : check_.op.Output(slot);
      const int first = names.empty() ? -1
                        : is_input    ? FirstInput(slot, names.size())
                                      : FirstOutput(slot, names.size());
      if (first < 0) continue;
      add(names, (is_input ? context_.inputs() : context_.outputs()).data() + first);
    }
    const bool one_shape =
        std::all_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return s == shapes[0]; });
    if (def_.layout_rule == LayoutRule::kSame && !one_shape) variables.clear();
    return variables;
  }

  // Return the position of a slot's argument 0 among all inputs (outputs); -1 if no argument is
  // present.
  int FirstInput(const std::string& slot, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const int index = context_.InputIndex(slot, i);
      if (index >= 0) return index - static_cast<int>(i);
    }
    return -1;
  }
  int FirstOutput(const std::string& slot, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const int index = context_.OutputIndex(slot, i);
      if (index >= 0) return index - static_cast<int>(i);
    }
    return -1;
  }

  std::vector<Layouts> LayoutVariants() const {
    std::vector<Layouts> variants = {{}};
    const bool has_selected_rows =
        std::ranges::any_of(context_.inputs(), &TensorMeta::is_selected_rows) ||
        std::ranges::any_of(context_.outputs(), &TensorMeta::is_selected_rows);
    if (def_.layout_rule == LayoutRule::kPlain || has_selected_rows) return variants;
    const std::vector<std::string> variables = LayoutVariables();
    if (variables.empty()) return variants;
    const bool mixed =
        def_.layout_rule == LayoutRule::kChannelBlocked && variables.size() <= kMaxLayoutVariables;
    const uint32_t all = (1U << std::min<size_t>(variables.size(), 31)) - 1;
    for (const int32_t block : options_.channel_blocks) {
      for (uint32_t chosen = mixed ? 1 : all; chosen <= all; ++chosen) {
        Layouts layouts;
        for (size_t i = 0; i < variables.size(); ++i) {
          if ((chosen >> i & 1U) != 0) layouts[variables[i]] = Layout::Blocked(block);
        }
        variants.push_back(std::move(layouts));
      }
    }
    return variants;
  }

  OpSettings Settings(const Variant& variant) const {
    return {.place = options_.place, .candidate = variant.candidate, .layouts = variant.layouts};
  }

  std::string Where(const Variant& variant) const {
    std::string where = StrCat(" candidate=", variant.candidate);
    if (options_.place.is_cpu()) {
      where += StrCat(" threads=", variant.threads);
    } else {
      where += StrCat(" on ", options_.place);
    }
    for (const auto& [name, layout] : variant.layouts) where += StrCat(" ", name, "=", layout);
    return where;
  }

  void CheckCandidate(const std::string& candidate, const Layouts& layouts) {
    if (!options_.place.is_cpu()) return CheckOnDevice({candidate, layouts, 1});
    NamedTensors reference_run;
    for (const int threads : options_.threads) {
      const Variant variant{candidate, layouts, threads};
      const ThreadCount thread_count(threads);
      const NamedTensors outputs = CheckVariant(variant);
      if (outputs.empty()) continue;
      if (reference_run.empty()) {
        reference_run = outputs;
      } else if (MayGroupByThreads(def_.type, candidate, check_.dtype)) {
        CompareRuns(reference_run, outputs, Where(variant), "the first thread count");
      } else {
        CompareBits(reference_run, outputs, Where(variant) + " compared with the first of them");
      }
    }
  }

  // Which layouts a candidate accepts may depend on the instruction set.
  void CheckOtherInstructionSets() {
    const std::vector<int64_t> sets = InstructionSets();
    for (size_t i = 1; i < sets.size(); ++i) {
      const InstructionSetLimit limit(sets[i]);
      const ThreadCount thread_count(1);
      for (const Layouts& layouts : LayoutVariants()) {
        for (const std::string& candidate : Candidates(layouts)) {
          if (options_.choose_only) continue;
          const std::string where =
              StrCat(Where({candidate, layouts, 1}), " on ", InstructionSetName(sets[i]));
          Guarded(where, [&] {
            CheckValues(RunOnce(check_.op, Settings({candidate, layouts, 1}), where), where);
          });
        }
      }
    }
  }

  // Also compares outputs that have no reference (masks, random numbers, saved statistics) with
  // those of the CPU.
  void CheckOnDevice(const Variant& variant) {
    const NamedTensors outputs = CheckVariant(variant);
    // The CPU may have no kernel for half. ops_in_half_test compares half with the rounded float32.
    if (IsHalf(check_.dtype)) return;
    const std::string where = Where(variant);
    Guarded(where + " on the CPU", [&] {
      PreparedOp on_cpu(check_.registry, check_.op, check_.inputs);
      CompareRuns(Launch(&on_cpu, kPoison, where + " on the CPU"), outputs, where, "the CPU");
    });
  }

  // Does all checks for one candidate, layout and number of threads. Returns the outputs.
  NamedTensors CheckVariant(const Variant& variant) {
    const std::string where = Where(variant);
    NamedTensors outputs;
    Guarded(where, [&] {
      PreparedOp prepared(check_.registry, check_.op, check_.inputs, Settings(variant));
      outputs = Launch(&prepared, kPoison, where);
      CheckValues(outputs, where);
      CompareBits(outputs, Launch(&prepared, kOtherPoison, where),
                  where + " in a second run over other leftovers in memory");
      if (is_brief_) return;
      CheckShapeOnly(&prepared, outputs, where);
      CheckZeros(&prepared, where);
    });
    if (outputs.empty()) return outputs;
    CheckViews(outputs, where);
    if (!is_brief_) CheckReplay(variant, outputs, where);
    for (const VariablePairs& pairs : InPlaceVariants(variant.layouts)) {
      std::string place = where + " in place";
      for (const auto& [input, output] : pairs) place += StrCat(" ", input, "->", output);
      Guarded(place, [&] {
        OpSettings settings = Settings(variant);
        settings.in_place = pairs;
        CompareBits(outputs, RunOnce(check_.op, settings, place), place);
      });
    }
    if (variant.layouts.empty() && !is_brief_) {
      CheckFewerRows(variant, where);
      CheckDefaults(variant, outputs, where);
      CheckMissingOutputs(variant, outputs, where);
      CheckHostileData(variant, where);
    }
    return outputs;
  }

  // A kernel that is prepared for more rows must compute the bits of one for the rows in use; on a
  // device the same up to rounding, since its products may take another algorithm.
  void CheckFewerRows(const Variant& variant, const std::string& where) {
    if (!wider_inputs_) wider_inputs_ = InputsWithMoreRows(def_, check_.op, check_.inputs);
    OpSettings settings = Settings(variant);
    settings.rows_vary = true;
    std::optional<NamedTensors> expected;
    for (const WiderInputs& wide : *wider_inputs_) {
      const std::string what = StrCat(where, " prepared for ", wide.what);
      Guarded(what, [&] {
        if (!AcceptsFewerRows(variant.candidate, wide.inputs)) return;
        if (!expected) expected = RunOnce(check_.op, settings, what);
        PreparedOp prepared(check_.registry, check_.op, wide.inputs, settings);
        for (const unsigned char poison : {kPoison, kOtherPoison}) {
          prepared.LoadFewerRows(check_.inputs, poison);
          const NamedTensors found = Finish(&prepared, what);
          ++report_->runs_with_fewer_rows;
          CheckValues(found, what);
          if (options_.place.is_cpu()) {
            CompareBits(*expected, found, what);
          } else {
            CompareRuns(*expected, found, what, "a kernel for these rows");
          }
        }
      });
    }
  }

  void CheckViews(const NamedTensors& outputs, const std::string& where) {
    for (const auto& [from, to] : def_.views) {
      const std::vector<std::string>& sources = check_.op.Input(from);
      const std::vector<std::string>& targets = check_.op.Output(to);
      for (size_t i = 0; i < std::min(sources.size(), targets.size()); ++i) {
        if (sources[i] == kEmptyVarName || targets[i] == kEmptyVarName) continue;
        const Tensor& input = check_.inputs.at(sources[i]);
        const Tensor& output = outputs.at(targets[i]);
        const bool same =
            input.byte_count() == output.byte_count() &&
            (input.byte_count() == 0 || std::memcmp(input.raw_data(), output.raw_data(),
                                                    static_cast<size_t>(input.byte_count())) == 0);
        if (!same) Fail(where, StrCat(to, " has other bytes than ", from, ", whose view it is"));
      }
    }
  }

  // The op in OpDef::replayed_by, given the op's inputs and outputs, must compute the same bits.
  void CheckReplay(const Variant& variant, const NamedTensors& outputs, const std::string& where) {
    if (def_.replayed_by.empty()) return;
    const OpDef& def = check_.registry.Get(def_.replayed_by);
    Op replay(def.type);
    for (const AttrDef& attr : def.attrs) {
      const AttrDef* of_op = def_.FindAttr(attr.name);
      const Attribute* value = of_op == nullptr ? nullptr : EffectiveAttr(check_.op, *of_op);
      if (value != nullptr) replay.attrs[attr.name] = *value;
    }
    NamedTensors inputs;
    for (const SlotDef& slot : def.inputs) {
      const bool is_input = !check_.op.Input(slot.name).empty();
      const auto& names = is_input ? check_.op.Input(slot.name) : check_.op.Output(slot.name);
      if (names.empty() && !slot.dispensable) return;
      if (!names.empty()) replay.SetInput(slot.name, names);
      for (const std::string& name : names) {
        inputs[name] = (is_input ? check_.inputs : outputs).at(name);
      }
    }
    NamedTensors expected;
    for (const SlotDef& slot : def.outputs) {
      replay.SetOutput(slot.name, check_.op.Output(slot.name));
      for (const std::string& name : check_.op.Output(slot.name)) expected[name] = outputs.at(name);
    }
    const std::string place = StrCat(where, " replayed by ", def.type);
    Guarded(place, [&] {
      PreparedOp prepared(check_.registry, replay, inputs, Settings(variant));
      prepared.Load(inputs, kPoison);
      CompareBits(expected, Finish(&prepared, place), place);
    });
  }

  NamedTensors Launch(PreparedOp* prepared, unsigned char poison, const std::string& where) {
    prepared->Load(check_.inputs, poison);
    return Finish(prepared, where);
  }

  NamedTensors Finish(PreparedOp* prepared, const std::string& where) {
    prepared->Run();
    ++report_->runs;
    for (const std::string& fault : prepared->Faults()) Fail(where, fault);
    return prepared->Outputs();
  }

  NamedTensors RunOnce(const Op& op, const OpSettings& settings, const std::string& where) {
    PreparedOp prepared(check_.registry, op, check_.inputs, settings);
    return Launch(&prepared, kPoison, where);
  }

  void CheckValues(const NamedTensors& outputs, const std::string& where) {
    for (const auto& [name, expected] : check_.expected) {
      const auto it = outputs.find(name);
      if (it == outputs.end()) {
        Fail(where, StrCat(name, ": there is no such output"));
        continue;
      }
      const bool is_float = IsFloat(it->second.dtype());
      const std::string difference =
          FirstDifference(ToArray(it->second), expected, is_float ? check_.tolerance : 0.0);
      if (!difference.empty()) Fail(where, StrCat(name, " ", difference));
    }
  }

  void CompareBits(const NamedTensors& expected, const NamedTensors& found,
                   const std::string& where) {
    for (const auto& [name, tensor] : expected) {
      if (SameBits(found.at(name), tensor)) continue;
      const std::string difference = FirstDifference(ToArray(found.at(name)), ToArray(tensor), 0.0);
      Fail(where, StrCat(name, " differs: ",
                         difference.empty() ? "only in the sign of zeros" : difference));
    }
  }

  // Allows the rounding errors of sums that are grouped differently, and nothing more.
  void CompareRuns(const NamedTensors& expected, const NamedTensors& found,
                   const std::string& where, const std::string& other) {
    if (found.empty()) return;
    for (const auto& [name, tensor] : expected) {
      const std::string difference = FirstDifference(
          ToArray(found.at(name)), ToArray(tensor),
          IsFloat(tensor.dtype()) ? std::max(check_.tolerance, Tolerances::Of(tensor.dtype())) : 0);
      if (!difference.empty()) {
        Fail(where, StrCat(name, " differs from ", other, ": ", difference));
      }
    }
  }

  void CheckShapeOnly(PreparedOp* prepared, const NamedTensors& outputs, const std::string& where) {
    for (const std::string& name : ShapeOnlyVariables()) {
      for (const unsigned char poison : {kPoison, kOtherPoison}) {
        prepared->Load(check_.inputs, kPoison);
        prepared->PoisonInput(name, poison);
        const std::string what = StrCat(where, " with other data in shape-only input ", name);
        CompareBits(outputs, Finish(prepared, what), what);
      }
      if (!options_.place.is_cpu()) continue;
      prepared->Load(check_.inputs, kPoison);
      prepared->TakeInputAway(name);
      const std::string what = StrCat(where, " without the shape-only input ", name);
      CompareBits(outputs, Finish(prepared, what), what);
    }
  }

  // An op that is declared zero_preserving computes zeros from zeros, so that the padding of a
  // blocked output stays zero.
  void CheckZeros(PreparedOp* prepared, const std::string& where) {
    if (!def_.zero_preserving) return;
    NamedTensors zeros;
    for (const auto& [name, tensor] : check_.inputs) zeros[name] = ZerosLike(tensor);
    prepared->Load(zeros, kPoison);
    const NamedTensors outputs = Finish(prepared, where + " of zeros");
    for (const StaticText slot : def_.layout_slots) {
      for (const std::string& name : check_.op.Output(slot)) {
        const auto found = outputs.find(name);
        if (found == outputs.end() || SameBits(found->second, ZerosLike(found->second))) continue;
        Fail(where, StrCat(name, " of zeros is not zero, though the op is zero_preserving"));
      }
    }
  }

  std::set<std::string> ShapeOnlyVariables() const {
    std::set<std::string> shape_only;
    std::set<std::string> read;
    for (const SlotDef& slot : def_.inputs) {
      for (const std::string& name : check_.op.Input(slot.name)) {
        if (name != kEmptyVarName) (slot.shape_only ? shape_only : read).insert(name);
      }
    }
    for (const std::string& name : read) shape_only.erase(name);
    return shape_only;
  }

  // Returns each pair of variables that may share storage by itself, and all pairs together.
  std::vector<VariablePairs> InPlaceVariants(const Layouts& layouts) const {
    const OpContext context = ContextOf(def_, check_.op, check_.inputs, layouts);
    const std::vector<std::string> inputs = InputOrder(def_, check_.op);
    std::vector<VariablePairs> variants;
    VariablePairs all;
    for (const auto& [from, to] : def_.in_place) {
      const size_t count = std::min(context.InputCount(from), context.OutputCount(to));
      for (size_t i = 0; i < count; ++i) {
        const int in = context.InputIndex(from, i);
        const int out = context.OutputIndex(to, i);
        if (in < 0 || out < 0) continue;
        const TensorMeta& a = context.inputs()[static_cast<size_t>(in)];
        const TensorMeta& b = context.outputs()[static_cast<size_t>(out)];
        if (!(a.shape == b.shape) || a.dtype != b.dtype || !(a.layout == b.layout)) continue;
        const std::string& source = check_.op.Input(from)[i];
        const std::string& target = check_.op.Output(to)[i];
        if (std::count(inputs.begin(), inputs.end(), source) > 1) continue;
        variants.push_back({{source, target}});
        const bool taken = std::any_of(all.begin(), all.end(), [&](const auto& pair) {
          return pair.first == source || pair.second == target;
        });
        if (!taken) all.emplace_back(source, target);
      }
    }
    if (all.size() > 1) variants.push_back(std::move(all));
    return variants;
  }

  // With every default attribute set explicitly, the op must compute the same.
  void CheckDefaults(const Variant& variant, const NamedTensors& outputs,
                     const std::string& where) {
    Op op = check_.op;
    for (const AttrDef& attr : def_.attrs) {
      if (attr.default_value && !op.HasAttr(attr.name)) op.SetAttr(attr.name, *attr.default_value);
    }
    if (op.attrs.size() == check_.op.attrs.size()) return;
    const std::string what = where + " with default attributes written out";
    Guarded(what, [&] { CompareBits(outputs, RunOnce(op, Settings(variant), what), what); });
  }

  // For any data of an input, a kernel must compute something without touching other memory, or
  // throw an Error if the input is declared as checks_data.
  void CheckHostileData(const Variant& variant, const std::string& where) {
    PreparedOp prepared(check_.registry, check_.op, check_.inputs, Settings(variant));
    for (const SlotDef& slot : def_.inputs) {
      for (const std::string& name : check_.op.Input(slot.name)) {
        if (slot.shape_only || name == kEmptyVarName) continue;
        // A bool has no values but 0 and 1.
        if (check_.inputs.at(name).dtype() == DType::kBool) continue;
        for (const unsigned char byte : kHostileBytes) {
          // A huge count in the data may legitimately require more memory than there is.
          if (def_.data_dependent_shape && byte == 0x7F) continue;
          const std::string what = StrCat(where, " with bytes of ", int{byte}, " in ", name);
          try {
            prepared.Load(check_.inputs, kPoison);
            prepared.PoisonInput(name, byte);
            Finish(&prepared, what);
          } catch (const Error& error) {
            if (slot.checks_data) continue;
            Fail(what, StrCat("refused, though the slot is not checks_data: ", error.what()));
          }
        }
      }
    }
  }

  // A program needn't name every output: without one of them, the op must compute the others. If
  // the output isn't dispensable, the op may throw an Error instead, which must name the slot.
  void CheckMissingOutputs(const Variant& variant, const NamedTensors& outputs,
                           const std::string& where) {
    for (const SlotDef& slot : def_.outputs) {
      const std::vector<std::string>& names = check_.op.Output(slot.name);
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == kEmptyVarName) continue;
        std::vector<std::string> others = names;
        others[i] = kEmptyVarName;
        Op op = check_.op;
        op.SetOutput(slot.name, others);
        const std::string what = StrCat(where, " without output ", names[i]);
        CheckMissingOutput(op, slot.name, variant, outputs, what);
        if (names.size() > 1) continue;
        CheckMissingOutput(op.SetOutput(slot.name, {}), slot.name, variant, outputs, what);
      }
    }
  }

  // An output that is the next value of a dispensable input may be absent only if the input is.
  bool MayBeAbsent(const std::string& slot) const {
    const auto is_next_value = [&](const auto& pair) {
      return pair.second == slot && def_.FindInput(pair.first)->dispensable &&
             !check_.op.Input(pair.first).empty();
    };
    return def_.FindOutput(slot)->dispensable && std::ranges::none_of(def_.in_place, is_next_value);
  }

  void CheckMissingOutput(const Op& op, const std::string& slot, const Variant& variant,
                          const NamedTensors& outputs, const std::string& where) {
    try {
      CheckOp(def_, op);
      const OpContext context = ContextOf(def_, op, check_.inputs, {}, options_.place);
      if (check_.registry.FindKernel(context, variant.candidate) == nullptr) return;
      const NamedTensors found = RunOnce(op, Settings(variant), where);
      NamedTensors expected = outputs;
      std::erase_if(expected, [&](const auto& output) { return !found.contains(output.first); });
      CompareBits(expected, found, where);
    } catch (const Error& error) {
      if (MayBeAbsent(slot)) {
        if (op.OutputNames().empty()) return;
        Fail(where, StrCat("refused, though the slot is dispensable: ", error.what()));
      } else if (std::string_view(error.what()).find(StrCat('"', slot, '"')) ==
                 std::string_view::npos) {
        Fail(where, StrCat("an Error that doesn't name the slot: ", error.what()));
      }
    }
  }

  const OpCheck& check_;
  const RunnerOptions& options_;
  CaseReport* report_;
  const OpDef& def_;
  const OpContext context_;
  // Kernels of float32 have the same templates, and emulated kernels take long.
  const bool is_brief_ = !options_.place.is_cpu() && check_.dtype == DType::kFloat64;
  std::optional<std::vector<WiderInputs>> wider_inputs_;  // made when they are first needed
};

}  // namespace

NamedTensors KeepFloat32(const OpDef& def, const Op& op, NamedTensors inputs) {
  for (auto& [name, tensor] : inputs) {
    if (!IsHalf(tensor.dtype()) || !KeepsFloat32(def.inputs, op.inputs, name)) continue;
    tensor = Cast(tensor, DType::kFloat32);
  }
  return inputs;
}

std::vector<DType> CheckedHalves(const OpRegistry& registry, const std::string& type, Place place) {
  std::vector<DType> halves;
  if (registry.Find(type) == nullptr) return halves;
  for (const KernelDef& kernel : registry.Kernels(type)) {
    if (kernel.name != kNativeHalfKernel || kernel.place != place.kind) continue;
    if (kernel.needs <= UsedInstructionSet()) halves.push_back(kernel.dtype);
  }
  return halves;
}

double NativeTolerance(const OpCase& op_case, DType half) {
  return half == DType::kBFloat16
             ? std::max(Tolerances::kNativeBFloat16, op_case.bfloat16_tolerance)
             : Tolerances::kNativeFloat16;
}

bool KeepsFloat32(const std::vector<SlotDef>& slots, const Slots& arguments,
                  const std::string& variable) {
  return std::ranges::any_of(arguments, [&](const SlotArguments& given) {
    return std::ranges::count(given.arguments, variable) > 0 &&
           std::ranges::any_of(slots, [&](const SlotDef& slot) {
             return slot.keeps_float32 && slot.name == given.slot;
           });
  });
}

void CheckOpEverywhere(const OpCheck& check, const RunnerOptions& options, CaseReport* report) {
  try {
    CheckOp(check.registry.Get(check.op.type), check.op);
    OpChecker checker(check, options, report);
    if (options.place.is_cpu()) {
      checker.CheckShapes();
      checker.CheckUnknownDims();
    }
    checker.CheckKernels();
  } catch (const std::exception& error) {
    report->failures.push_back(StrCat(check.label, ": threw: ", error.what()));
  }
}

}  // namespace skiff::harness
