#include "tests/harness/random_workload.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <ranges>
#include <set>
#include <source_location>
#include <tuple>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/exponential_moving_average.h"
#include "framework/builder/optimizer/model_average.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/op_role.h"
#include "framework/precision/half_rewrite.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

constexpr int64_t kMaxElements = 4096;
constexpr size_t kRuns = 7;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name) > 0;
}

bool HasHuge(const Array& array) {
  return std::ranges::any_of(array.values, [](double value) { return std::abs(value) > 1e9; });
}

bool IsFinite(const Array& array) {
  return std::ranges::all_of(array.values, [](double value) { return std::isfinite(value); });
}

// A variable that an op may read.
struct Value {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  bool trained = false;       // a gradient flows back through it
  bool overwritable = false;  // neither a feed nor a parameter, and no gradient op reads it
};

struct Feed {
  std::string name;
  Array array;
};

// Builds a program op by op. It keeps the list of variables that exist so far, with the facts that
// decide what may be done with them (trained, overwritable), so that every program is valid: no
// gradient op reads a variable that was overwritten, and every op gets values that it accepts.
class Generator {
 public:
  Generator(const OpRegistry& registry, const CaseList& cases, uint64_t seed,
            const RandomWorkloadOptions& options)
      : registry_(registry),
        options_(options),
        random_(seed),
        dtype_(options.smooth || IsInHalf() || Chance(0.75) ? DType::kFloat32 : DType::kFloat64),
        main_(std::make_shared<Program>()),
        startup_(std::make_shared<Program>()) {
    workload_.name = StrCat("random_", seed);
    main_->seed = startup_->seed = seed + 1;
    for (const OpCase& op_case : cases) {
      if (!IsUsable(op_case)) continue;
      cases_[op_case.type].push_back(&op_case);
      if (TakesAnyShape(op_case)) elementwise_[op_case.type].push_back(&op_case);
    }
    SKIFF_ENFORCE(!elementwise_.empty(), kInvalidArgument,
                  "random programs need a case of an element-wise op");
  }

  Workload Make() {
    const ProgramGuard guard(main_.get(), startup_.get());
    AddState({3, 4});
    for (int made = 0; made < options_.ops;) {
      const bool any_shape = Chance(0.4);
      made += any_shape ? AddElementwise(Draw(elementwise_)) : AddCase(Draw(cases_));
      if (Chance(0.15)) AddStateUpdate();
      if (Chance(0.1)) AddLoop();
    }
    Train();
    AddProbes();
    workload_.programs.insert(workload_.programs.begin(), main_);
    workload_.startup = startup_;
    for (size_t i = 0; i < kRuns; ++i) AddRun(i);
    return std::move(workload_);
  }

 private:
  using CasesByType = std::map<std::string, std::vector<const OpCase*>>;

  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }
  bool Chance(double probability) {
    return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }
  // Every type of op is equally likely, however many cases it has.
  const OpCase& Draw(const CasesByType& cases) {
    const auto& of_type =
        std::next(cases.begin(), static_cast<std::ptrdiff_t>(Below(cases.size())));
    return *of_type->second[Below(of_type->second.size())];
  }

  bool IsInHalf() const { return IsHalf(options_.precision.dtype); }

  bool IsUsable(const OpCase& op_case) const {
    if (op_case.benchmark_only || HasSelectedRows(op_case) || HasLoD(op_case)) {
      return false;
    }
    // Which level it may append depends on the LoD that its input happens to have.
    if (op_case.type == "lod_reset") return false;
    // Which labels are legal depends on lengths and blank, not on the range of labels alone.
    if (op_case.type == "warpctc") return false;
    const OpDef& def = registry_.Get(op_case.type);
    if (options_.smooth && def.grad == nullptr) return false;
    bool all_fixed = true;
    for (const auto& [slot, arrays] : op_case.inputs) {
      for (const Array& array : arrays) {
        all_fixed = all_fixed && array.fixed_dtype;
        const int64_t elements = array.shape.element_count();
        if (elements == 0 || elements > kMaxElements) return false;
        if (options_.smooth && !IsFinite(array)) return false;
        // What follows them would be infinite or NaN.
        if (!array.fixed_dtype && HasHuge(array)) return false;
      }
    }
    return all_fixed || std::count(op_case.dtypes.begin(), op_case.dtypes.end(), dtype_) > 0;
  }

  bool TakesAnyShape(const OpCase& op_case) const {
    if (!registry_.Get(op_case.type).elementwise || op_case.inputs.empty()) return false;
    for (const auto& [slot, arrays] : op_case.inputs) {
      for (const Array& array : arrays) {
        if (array.fixed_dtype) return false;
      }
    }
    return true;
  }

  // ---- where inputs come from

  size_t AddValue(Value value) {
    values_.push_back(std::move(value));
    return values_.size() - 1;
  }

  size_t AddLayer(const Variable& variable, bool trained) {
    return AddValue({.name = variable.name(),
                     .shape = Shape(variable.dims()),
                     .dtype = variable.dtype(),
                     .trained = trained,
                     .overwritable = !trained});
  }

  Variable VariableOf(size_t value) const { return {main_->root(), values_[value].name}; }

  size_t AddFeed(const Array& array, bool may_be_trained) {
    const std::string name = StrCat("feed_", feeds_.size());
    const DType dtype = DTypeIn(array, dtype_);
    const bool trained = may_be_trained && Chance(0.2);
    layers::Data(name, array.shape.ToVector(), dtype, {.stop_gradient = !trained});
    feeds_.push_back({name, array});
    return AddValue({.name = name, .shape = array.shape, .dtype = dtype, .trained = trained});
  }

  size_t AddParameter(const Array& array) {
    const std::string name = StrCat("parameter_", parameters_++);
    MakeParameter(name, ToTensor(array, dtype_));
    return AddValue({.name = name, .shape = array.shape, .dtype = dtype_, .trained = true});
  }

  void MakeParameter(const std::string& name, const Tensor& first) {
    Var var{.name = name, .dtype = dtype_, .dims = first.shape().ToVector()};
    var.persistable = var.is_parameter = true;
    main_->root()->CreateVar(var);
    if (!IsInHalf()) {
      workload_.initial[name] = first;
      return;
    }
    startup_->root()->CreateVar(std::move(var));
    Op op("assign_value");
    op.SetAttr("dtype", static_cast<int32_t>(dtype_));
    op.SetAttr("shape", std::vector<int32_t>(first.shape().begin(), first.shape().end()));
    op.SetAttr("fp32_values", first.ToVector<float>());
    op.SetOutput("Out", {name});
    startup_->root()->AppendOp(std::move(op));
  }

  // Adds a variable of the scope that programs write, but don't train.
  size_t AddState(const Shape& shape) {
    const std::string name = StrCat("state_", workload_.initial.size());
    Var var{.name = name, .dtype = dtype_, .dims = shape.ToVector()};
    var.persistable = var.stop_gradient = true;
    main_->root()->CreateVar(std::move(var));
    workload_.initial[name] = ToTensor(Uniform(shape, random_()), dtype_);
    return AddValue({.name = name, .shape = shape, .dtype = dtype_, .overwritable = true});
  }

  // Returns one of the values that fit, newer ones with a higher probability, which makes deep
  // programs.
  template <typename Fits>
  std::optional<size_t> Pick(const Fits& fits) {
    std::vector<size_t> fitting;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (fits(values_[i])) fitting.push_back(i);
    }
    if (fitting.empty()) return std::nullopt;
    return fitting[std::max(Below(fitting.size()), Below(fitting.size()))];
  }

  // Returns the value itself, or a new one that is squashed into the range of the case's finite
  // values.
  size_t Fitted(size_t value, const Array& array) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const double one : array.values) {
      if (!std::isfinite(one)) continue;
      low = std::min(low, one);
      high = std::max(high, one);
    }
    // None is finite: any range will do.
    if (low > high) return value;
    // A single value has no range: choose one around it that keeps its sign.
    if (low == high) std::tie(low, high) = std::minmax(0.5 * low, 1.5 * low);
    const bool any_sign = low <= 0 && high >= 0;
    if (any_sign && (low == high || Chance(0.5))) return value;
    const bool trained = values_[value].trained;
    const size_t unit = AddLayer(layers::Sigmoid(VariableOf(value)), trained);
    return AddLayer(layers::Scale(VariableOf(unit), {.scale = static_cast<float>(high - low),
                                                     .bias = static_cast<float>(low)}),
                    trained);
  }

  // Returns some value, flattened and cut to the array's shape.
  std::optional<size_t> Resized(const Array& array, bool may_be_trained) {
    const int64_t count = array.shape.element_count();
    if (array.shape.rank() == 0) return std::nullopt;
    const auto source = Pick([&](const Value& value) {
      // The XShape of reshape2 has one more dim.
      return value.dtype == dtype_ && value.shape.rank() > 0 &&
             value.shape.rank() < Shape::kMaxRank && value.shape.element_count() >= count &&
             (may_be_trained || !value.trained);
    });
    if (!source) return std::nullopt;
    const bool trained = values_[*source].trained;
    const size_t flat = AddLayer(layers::Reshape(VariableOf(*source), {-1}), trained);
    const size_t cut = AddLayer(
        layers::Slice(VariableOf(flat), {.axes = {0}, .starts = {0}, .ends = {count}}), trained);
    return AddLayer(layers::Reshape(VariableOf(cut), array.shape.ToVector()), trained);
  }

  size_t ChooseInput(const Array& array, bool may_be_trained, bool checks_data) {
    if (array.fixed_dtype) return AddFeed(array, false);
    // The op may refuse all values but those of its case.
    if (checks_data) return AddFeed(array, may_be_trained);
    const auto same_shape = Pick([&](const Value& value) {
      return value.dtype == dtype_ && value.shape == array.shape &&
             (may_be_trained || !value.trained);
    });
    if (same_shape && Chance(0.6)) return Fitted(*same_shape, array);
    if (Chance(0.35)) {
      const auto resized = Resized(array, may_be_trained);
      if (resized) return Fitted(*resized, array);
    }
    if (may_be_trained && array.shape.rank() > 0 && Chance(0.6)) return AddParameter(array);
    return AddFeed(array, may_be_trained);
  }

  // ---- ops

  // Returns 1 if the op was added, 0 if it refuses its inputs.
  int AddCase(const OpCase& op_case) {
    return AddOp(op_case, [&](const Array& array, bool may_be_trained, bool checks_data) {
      return ChooseInput(array, may_be_trained, checks_data);
    });
  }

  int AddElementwise(const OpCase& op_case) {
    const auto first = Pick([&](const Value& value) { return value.dtype == dtype_; });
    const Shape shape = values_[*first].shape;
    return AddOp(op_case, [&](const Array& array, bool may_be_trained, bool) {
      const auto value = Pick([&](const Value& other) {
        return other.dtype == dtype_ && other.shape == shape && (may_be_trained || !other.trained);
      });
      return value ? Fitted(*value, array) : AddState(shape);
    });
  }

  template <typename Choose>
  int AddOp(const OpCase& op_case, const Choose& choose) {
    const OpDef& def = registry_.Get(op_case.type);
    Op op(op_case.type);
    op.attrs = op_case.attrs;
    std::vector<size_t> read;
    bool trained = false;
    for (const auto& [slot, arrays] : op_case.inputs) {
      const bool may_be_trained = def.grad != nullptr && Contains(op_case.gradients, slot);
      const bool checks_data = def.FindInput(slot)->checks_data;
      std::vector<std::string> names;
      for (const Array& array : arrays) {
        read.push_back(choose(array, may_be_trained, checks_data));
        names.push_back(values_[read.back()].name);
        trained = trained || values_[read.back()].trained;
      }
      op.SetInput(slot, std::move(names));
    }
    return Append(op_case, def, std::move(op), read, trained) ? 1 : 0;
  }

  bool Append(const OpCase& op_case, const OpDef& def, Op op, const std::vector<size_t>& read,
              bool trained) {
    for (const auto& [slot, count] : op_case.outputs) {
      std::vector<std::string> names;
      for (int i = 0; i < count; ++i) names.push_back(StrCat("value_", values_.size(), slot, i));
      op.SetOutput(slot, std::move(names));
    }
    std::vector<TensorMeta> metas;
    try {
      metas = InferOutputMetas(def, op, MetasOf(InputOrder(def, op)));
    } catch (const Error&) {
      return false;
    }
    // The executor doesn't run ops whose output shape depends on data.
    const bool known = std::all_of(metas.begin(), metas.end(),
                                   [](const TensorMeta& meta) { return meta.shape.is_known(); });
    if (!known) return false;
    if (trained) {
      for (const size_t value : read) values_[value].overwritable = false;
    }
    NameOutputs(op_case, def, metas, trained, &op);
    InferOp(registry_, main_->root(), main_->root()->AppendOp(std::move(op)));
    return true;
  }

  std::vector<TensorMeta> MetasOf(const std::vector<std::string>& names) const {
    std::vector<TensorMeta> metas;
    for (const std::string& name : names) {
      TensorMeta& meta = metas.emplace_back();
      if (name == kEmptyVarName) continue;
      const Var* var = main_->root()->GetVar(name);
      meta = {.shape = Shape(var->dims), .dtype = var->dtype};
    }
    return metas;
  }

  // Names the outputs: new variables, or existing ones that may be overwritten.
  void NameOutputs(const OpCase& op_case, const OpDef& def, const std::vector<TensorMeta>& metas,
                   bool trained, Op* op) {
    std::set<std::string> written;
    size_t index = 0;
    for (const SlotDef& slot : def.outputs) {
      const bool carries_gradient =
          trained && !slot.intermediate &&
          (op_case.loss_outputs.empty() || Contains(op_case.loss_outputs, slot.name));
      std::vector<std::string> names = op->Output(slot.name);
      for (std::string& name : names) {
        const TensorMeta& meta = metas[index++];
        const bool output_trained =
            carries_gradient && IsFloat(meta.dtype) && meta.shape.element_count() > 0;
        const auto old = Pick([&](const Value& value) {
          return value.overwritable && value.dtype == meta.dtype && value.shape == meta.shape &&
                 !written.contains(value.name);
        });
        // A trained op always gets new variables, since a gradient must not flow through a variable
        // that was overwritten.
        if (old && !trained && Chance(0.5)) {
          name = values_[*old].name;
        } else {
          Var var{.name = name, .dtype = meta.dtype, .dims = meta.shape.ToVector()};
          var.stop_gradient = trained && !output_trained;
          main_->root()->CreateVar(std::move(var));
          // A gradient op may read any output of its forward op.
          AddValue({.name = name,
                    .shape = meta.shape,
                    .dtype = meta.dtype,
                    .trained = output_trained,
                    .overwritable = !trained});
        }
        written.insert(name);
      }
      if (!names.empty()) op->SetOutput(slot.name, std::move(names));
    }
  }

  // state = state + value, or value - state: elementwise_sub can't work in place there.
  void AddStateUpdate() {
    const auto source = Pick([&](const Value& value) {
      return value.dtype == dtype_ && value.shape.element_count() > 0 && value.shape.rank() > 0;
    });
    const std::string value = values_[*source].name;
    const size_t state = AddState(values_[*source].shape);
    const std::string name = values_[state].name;
    const bool forwards = Chance(0.5);
    Op op(forwards ? "elementwise_add" : "elementwise_sub");
    op.SetInput("X", {forwards ? name : value}).SetInput("Y", {forwards ? value : name});
    op.SetOutput("Out", {name});
    InferOp(registry_, main_->root(), main_->root()->AppendOp(std::move(op)));
  }

  // ---- loops and branches

  // Runs a few ops on some value: in a loop over its parts, in a loop that counts, or in a branch.
  void AddLoop() {
    const auto source = Pick([&](const Value& value) {
      // Ragged values don't go from iteration to iteration (docs/loops.md).
      const bool is_ragged = main_->root()->GetVar(value.name)->lod_level > 0;
      return value.dtype == dtype_ && value.shape.rank() > 0 && value.shape.element_count() > 0 &&
             value.shape[0] <= 8 && !is_ragged;
    });
    if (!source) return;
    const bool trained = values_[*source].trained;
    if (trained) values_[*source].overwritable = false;
    has_lookups_ = trained && Chance(0.5);
    const Variable x = VariableOf(*source);
    AddLayer(Chance(0.3)   ? LoopOverParts(x)
             : Chance(0.4) ? CountingLoop(x, 0)
             : Chance(0.5) ? LoopOverArray(x, 0)
                           : Branch(x, 0),
             trained);
  }

  Variable LoopOverParts(const Variable& x) {
    const std::vector<int64_t> part(x.dims().begin() + 1, x.dims().end());
    const Variable zero = layers::FillConstant(part, dtype_, 0.25);
    layers::StaticRnn rnn({.reverse = Chance(0.3)});
    rnn.Body([&] {
      const Variable before = rnn.Memory(zero);
      const Variable part = rnn.StepInput(x);
      // The result must depend on x.
      const Variable after = SomeOps(part, layers::Sigmoid(part + before), 0);
      rnn.UpdateMemory(before, after);
      rnn.StepOutput(after);
    });
    return rnn.Outputs()[0];
  }

  Variable CountingLoop(const Variable& x, int depth) {
    const Variable end = layers::FillConstant({1}, DType::kInt64, static_cast<double>(Below(4)));
    const Variable zero = layers::FillConstant({1}, DType::kInt64, 0.0);
    return layers::WhileLoop(
        [&](const Variables& v) { return layers::LessThan(v[0], end); },
        [&](const Variables& v) {
          return Variables{layers::Increment(layers::Assign(v[0])), SomeOps(x, v[1], depth + 1)};
        },
        {zero, x})[1];
  }

  // Each iteration makes an element of an array of an earlier one. Elements may be overwritten, and
  // others than the last are read, too.
  Variable LoopOverArray(const Variable& x, int depth) {
    const auto index = [](size_t value) {
      return layers::FillConstant({1}, DType::kInt64, static_cast<double>(value));
    };
    const size_t count = Below(4);
    const Variable end = index(count);
    const Variable array = layers::CreateArray(dtype_);
    layers::ArrayWrite(x, index(0), array);
    const bool overwrites = Chance(0.3);
    layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], end); },
                      [&](const Variables& v) {
                        const Variable before = layers::ArrayRead(array, v[0]);
                        const Variable next = layers::Increment(layers::Assign(v[0]));
                        const Variable after = SomeOps(x, before, depth + 1);
                        if (overwrites) layers::ArrayWrite(layers::Tanh(after), next, array);
                        layers::ArrayWrite(after, next, array);
                        return Variables{next};
                      },
                      {index(0)});
    const Variable last = layers::ArrayRead(array, end);
    if (Chance(0.5)) return last;
    return layers::Tanh(last + layers::ArrayRead(array, index(Below(count + 1))));
  }

  Variable Branch(const Variable& x, int depth) {
    const Variable flag = layers::FillConstant({1}, DType::kBool, Chance(0.5) ? 1.0 : 0.0);
    return layers::Cond(
        flag, [&] { return Variables{SomeOps(x, x, depth + 1)}; },
        [&] { return Variables{layers::Tanh(x)}; })[0];
  }

  // Returns what a few ops make of two values of one shape: numbers that don't grow.
  Variable SomeOps(const Variable& x, Variable state, int depth) {
    const int count = 1 + static_cast<int>(Below(4));
    for (int i = 0; i < count; ++i) {
      switch (Below(depth < 2 ? 9 : 6)) {
        case 0:
          state = layers::Tanh(state);
          break;
        case 1:
          state = layers::Sigmoid(x + state);
          break;
        case 2:
          state = layers::Scale(state, {.scale = -0.75f, .bias = 0.125f});
          break;
        case 3:
          state = layers::Sigmoid(x) * state;
          break;
        case 4:
          state = layers::Dropout(state, 0.25f);
          break;
        case 5:
          if (has_lookups_ && !state.dims().empty()) {
            state = layers::Tanh(state + Lookup(state.dims().back()));
          }
          break;
        case 6:
          state = CountingLoop(state, depth);
          break;
        case 7:
          state = LoopOverArray(state, depth);
          break;
        default:
          state = Branch(state, depth);
      }
    }
    return layers::Tanh(state);
  }

  // Returns a row [width] of a table, a new parameter. Its gradient may be sparse.
  Variable Lookup(int64_t width) {
    const std::string table = StrCat("table_", parameters_++);
    MakeParameter(table, ToTensor(Uniform({3, width}, random_()), dtype_));
    const Variable id = layers::FillConstant({1}, DType::kInt64, static_cast<double>(Below(3)));
    const LayerCall call("lookup_table_v2", "", std::source_location::current());
    Op op("lookup_table_v2");
    op.SetInput("W", {table}).SetInput("Ids", {id.name()}).SetAttr("is_sparse", Chance(0.7));
    return layers::Reshape(call.AppendFor(std::move(op)), {width});
  }

  // ---- training

  bool HasTrainedOutput(const Op& op) const {
    const std::vector<std::string> outputs = op.OutputNames();
    return std::any_of(values_.begin(), values_.end(), [&](const Value& value) {
      return value.trained && Contains(outputs, value.name);
    });
  }

  // Returns the inputs of all ops through which a gradient flows.
  std::set<std::string> ReadInTraining() const {
    std::set<std::string> read;
    for (const auto& op : main_->root()->ops()) {
      if (!HasTrainedOutput(*op)) continue;
      // What a loop leaves is there when it begins, too.
      const std::vector<std::string> written = op->OutputNames();
      for (const std::string& name : op->InputNames()) {
        if (!Contains(written, name)) read.insert(name);
      }
    }
    return read;
  }

  void RewriteToHalfWith(const std::set<std::string>& results) {
    if (!IsInHalf()) return;
    RewriteToHalf(registry_, options_.precision, results, main_.get(), startup_.get());
  }

  void Train() {
    const std::set<std::string> read = ReadInTraining();
    bool reads_parameter = false;
    std::vector<Variable> terms;
    for (const size_t value : std::views::iota(size_t{0}, values_.size())) {
      const Var* var = main_->root()->GetVar(values_[value].name);
      reads_parameter = reads_parameter || (var->is_parameter && read.contains(var->name));
      const bool computed =
          values_[value].trained && !var->is_parameter && !values_[value].name.starts_with("feed_");
      if (computed && !read.contains(var->name)) terms.push_back(layers::Mean(VariableOf(value)));
    }
    if (!reads_parameter) {
      RewriteToHalfWith({});
      return;
    }
    const Variable loss = terms.size() == 1 ? terms[0] : layers::Sum(terms);
    RewriteToHalfWith({loss.name()});
    // Cloned before Minimize appends backward and optimizer ops, which evaluation must not run.
    std::shared_ptr<const Program> test = main_->CloneForTest();
    const GradientClip clip = Chance(0.3) ? ClipByGlobalNorm(1.0f) : GradientClip{};
    const Regularizer decay = Chance(0.3) ? L2Decay(0.01f) : Regularizer{};
    optimizer::MinimizeOptions minimize;
    if (Chance(0.2)) minimize.gradient_merge = {.steps = 2};
    switch (Below(3)) {
      case 0:
        optimizer::Sgd({.learning_rate = 0.05, .clip = clip, .regularization = decay})
            .Minimize(loss, minimize);
        break;
      case 1:
        optimizer::Momentum({.learning_rate = 0.02, .clip = clip, .regularization = decay})
            .Minimize(loss, minimize);
        break;
      default:
        optimizer::Adam({.learning_rate = 0.01, .clip = clip, .regularization = decay})
            .Minimize(loss, minimize);
    }
    if (Chance(0.25)) optimizer::ExponentialMovingAverage({.decay = 0.5f});
    if (Chance(0.25)) optimizer::ModelAverage({.min_average_window = 2});
    if (Chance(0.7)) workload_.programs.push_back(std::move(test));
  }

  // Inserts ops among the updates that read parameters and gradients, some before and some after
  // the update in question. They overwrite their results in place.
  void AddProbes() {
    Block* root = main_->root();
    std::vector<Var> sources;
    for (const auto& var : root->vars()) {
      const bool read = (var->is_parameter || var->name.ends_with(kGradSuffix)) &&
                        var->kind == VarKind::kLoDTensor;
      if (read && var->dtype == dtype_) sources.push_back(*var);
    }
    const auto& ops = root->ops();
    const auto update = std::find_if(
        ops.begin(), ops.end(), [](const auto& op) { return (op->role() & kRoleOptimize) != 0; });
    const auto first = static_cast<size_t>(update - ops.begin());
    for (int i = 0; i < 3 && !sources.empty(); ++i) {
      const Var& source = sources[Below(sources.size())];
      const std::string probe = StrCat("probe_", i);
      root->CreateVar({.name = probe});
      const size_t position = first + Below(ops.size() - first + 1);
      for (const std::string& from : {probe, source.name}) {
        Op op("scale");
        op.SetInput("X", {from}).SetOutput("Out", {probe}).SetAttr("scale", 0.5f);
        root->InsertOp(position, std::move(op));
      }
      for (const size_t inserted : {size_t{0}, size_t{1}}) {
        InferOp(registry_, root, ops[position + inserted].get());
      }
    }
  }

  // ---- runs

  // Returns the feed's values in a different order for each run.
  Tensor FeedTensor(const Feed& feed, size_t run) const {
    Array array = feed.array;
    // Rotates whole rows, since a row may be an index into several dims of different extents.
    const int rank = array.shape.rank();
    const auto row = static_cast<size_t>(rank == 0 ? 1 : array.shape[rank - 1]);
    const size_t shift = run * 3 * row % array.values.size();
    std::rotate(array.values.begin(), array.values.begin() + static_cast<std::ptrdiff_t>(shift),
                array.values.end());
    return ToTensor(array, DTypeIn(array, dtype_));
  }

  FetchList Fetchable(const Program& program) const {
    FetchList names;
    for (const auto& op : program.root()->ops()) {
      for (const std::string& name : op->OutputNames()) {
        const Var* var = program.root()->GetVar(name);
        if (var->kind == VarKind::kStepScopes || var->kind == VarKind::kLoDTensorArray) continue;
        if (options_.smooth && !IsFloat(var->dtype)) continue;
        if (!Contains(names, name)) names.push_back(name);
      }
    }
    return names;
  }

  // By run: everything; nothing; one variable twice; some; and later the same ones again.
  FetchList ChooseFetches(size_t run, const FetchList& all) {
    const auto some = [&] {
      FetchList chosen;
      for (const std::string& name : all) {
        if (Chance(0.2)) chosen.push_back(name);
      }
      return chosen;
    };
    if (run == 0) return all;
    if (run == 1 || all.empty()) return {};
    if (run == 2) {
      const std::string& name = all[Below(all.size())];
      return {name, name};
    }
    if (run == 5) return workload_.runs[3].program == 0 ? workload_.runs[3].fetches : some();
    return some();
  }

  void AddRun(size_t index) {
    WorkloadRun run;
    const bool evaluates = index == 2 || index == 4;
    run.program = evaluates ? workload_.programs.size() - 1 : 0;
    const Program& program = *workload_.programs[run.program];
    std::set<std::string> read;
    for (const auto& op : program.root()->ops()) {
      for (const std::string& name : op->InputNames()) read.insert(name);
    }
    for (const Feed& feed : feeds_) {
      if (read.contains(feed.name)) run.feeds.emplace_back(feed.name, FeedTensor(feed, index));
    }
    run.fetches = ChooseFetches(index, Fetchable(program));
    workload_.runs.push_back(std::move(run));
  }

  const OpRegistry& registry_;
  const RandomWorkloadOptions options_;
  std::mt19937_64 random_;
  const DType dtype_;  // of floats
  CasesByType cases_;
  CasesByType elementwise_;
  std::shared_ptr<Program> main_;
  std::shared_ptr<Program> startup_;
  std::vector<Value> values_;
  std::vector<Feed> feeds_;
  int parameters_ = 0;
  bool has_lookups_ = false;  // whether the loop that is being made looks up rows
  Workload workload_;
};

}  // namespace

Workload RandomWorkload(const OpRegistry& registry, const CaseList& cases, uint64_t seed,
                        const RandomWorkloadOptions& options) {
  return Generator(registry, cases, seed, options).Make();
}

}  // namespace skiff::harness
