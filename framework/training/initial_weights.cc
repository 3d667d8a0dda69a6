#include "framework/training/initial_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/name_rules.h"
#include "framework/io/safetensors.h"
#include "framework/ir/master_name.h"
#include "framework/ir/program.h"
#include "framework/tensor/tensor.h"
#include "framework/training/float_casts.h"
#include "framework/training/saved_weights.h"

namespace skiff::training {
namespace {

using Dims = std::vector<int64_t>;
using NamedDims = std::map<std::string, Dims>;

// "a [2, 3], b [4] and 7 more"
std::string Listed(const NamedDims& tensors) {
  constexpr size_t kMost = 30;
  std::vector<std::string> texts;
  for (const auto& [name, dims] : tensors) {
    if (texts.size() == kMost) break;
    texts.push_back(StrCat(name, " [", Join(dims, ", "), "]"));
  }
  const std::string text = Join(texts, ", ");
  if (tensors.size() <= kMost) return text;
  return StrCat(text, " and ", tensors.size() - kMost, " more");
}

NamedDims ParametersOf(const Program& program) {
  NamedDims parameters;
  for (const auto& var : program.root()->vars()) {
    if (var->is_parameter) parameters.emplace(var->name, var->dims);
  }
  return parameters;
}

// A tensor of the model.
struct Source {
  std::string name;
  bool transpose = false;

  std::string Text() const {
    return StrCat("tensor \"", name, "\"", transpose ? ", transposed" : "");
  }
};

Dims DimsOf(const SavedWeights& saved, const Source& source) {
  Dims dims = saved.dims(source.name);
  if (source.transpose) std::ranges::reverse(dims);
  return dims;
}

// Which tensor of the model each parameter becomes.
class Sources {
 public:
  Sources(const std::string& model, const SavedWeights& saved, const NamedDims& parameters,
          const std::vector<NameRule>& rules)
      : model_(model) {
    const std::vector<std::string> names = saved.names();
    const std::vector<RuledName> ruled = ApplyRules(rules, names);
    // Ties last: the other tensor of a tie is the source, if there is one.
    for (size_t i = 0; i < names.size(); ++i) {
      if (!ruled[i].tie) Add(names[i], ruled[i], parameters);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (ruled[i].tie) AddTie(names[i], ruled[i], parameters);
    }
    for (const std::string& name : unused_names_) unused.emplace(name, saved.dims(name));
  }

  // Throws an Error unless tied tensors have the same elements.
  void CheckTies(SavedWeights* saved) const {
    for (const auto& [tied, parameter] : ties_) {
      const Tensor& a = saved->Load(tied.name, tied.transpose);
      const Source& source = of.at(parameter);
      const Tensor& b = saved->Load(source.name, source.transpose);
      const bool same =
          a.dtype() == b.dtype() && a.shape() == b.shape() &&
          std::memcmp(a.raw_data(), b.raw_data(), static_cast<size_t>(a.byte_count())) == 0;
      SKIFF_ENFORCE(same, kInvalidArgument, model_, ": ", tied.Text(), " differs from ",
                    source.Text(), ": expected the same elements, as the network has parameter \"",
                    parameter, "\" for both");
    }
  }

  std::map<std::string, Source> of;  // of each parameter that the model has
  NamedDims unused;
  std::vector<std::string> dropped;

 private:
  void Add(const std::string& name, const RuledName& ruled, const NamedDims& parameters) {
    if (ruled.drop) {
      dropped.push_back(name);
    } else if (!parameters.contains(ruled.name)) {
      unused_names_.push_back(name);
    } else {
      const auto [other, is_new] = of.emplace(ruled.name, Source{name, ruled.transpose});
      SKIFF_ENFORCE(is_new, kInvalidArgument, model_, ": the tensors \"", other->second.name,
                    "\" and \"", name, "\" both become parameter \"", ruled.name, "\"");
    }
  }

  void AddTie(const std::string& name, const RuledName& ruled, const NamedDims& parameters) {
    if (!of.contains(ruled.name)) {
      Add(name, ruled, parameters);
      return;
    }
    ties_.emplace_back(Source{name, ruled.transpose}, ruled.name);
    dropped.push_back(name);
  }

  std::string model_;
  std::vector<std::string> unused_names_;
  std::vector<std::pair<Source, std::string>> ties_;
};

bool BeginsWithOneOf(const std::string& name, const std::vector<std::string>& starts) {
  return std::ranges::any_of(starts, [&](const auto& start) { return name.starts_with(start); });
}

// `missing`: of all parameters.
void CheckComplete(const std::string& model, const NamedDims& missing, const NamedDims& unused,
                   const TakeWeightsOptions& options) {
  NamedDims wanted;
  std::ranges::copy_if(missing, std::inserter(wanted, wanted.end()), [&](const auto& parameter) {
    return !BeginsWithOneOf(parameter.first, options.new_parameters);
  });
  const std::string expected =
      options.new_parameters.empty()
          ? "expected all"
          : StrCat("expected all but those of ", Join(options.new_parameters, " and "));
  SKIFF_ENFORCE(
      options.allow_missing || wanted.empty(), kInvalidArgument, model,
      ": the model lacks the parameters ", Listed(wanted), ": ", expected,
      ": the model has another configuration",
      unused.empty() ? "" : ", or other names; it has what becomes no parameter: ", Listed(unused));
  SKIFF_ENFORCE(options.allow_unused || unused.empty(), kInvalidArgument, model,
                ": the model has what becomes no parameter: ", Listed(unused),
                ": expected parameters of the program only");
}

bool BeginEachOther(DType a, DType b) {
  return a == b || (IsFloat32OrHalf(a) && IsFloat32OrHalf(b));
}

// What the program's variables are to become, as variables of the executor's scope.
class NewValues {
 public:
  explicit NewValues(Executor* saved) : saved_(saved) {}

  // `to`: the variable's dtype in the program.
  void Add(const std::string& name, const std::string& from, DType to) {
    if (saved_->scope().Get(from).dtype() == to) {
      sources_.emplace_back(name, from);
      return;
    }
    casts_.push_back({.from = from, .to = StrCat(name, "@", to), .dtype = to});
    sources_.emplace_back(name, casts_.back().to);
  }

  void AssignTo(Scope* scope) {
    CastFloats(casts_, saved_);
    for (const auto& [name, from] : sources_) scope->Assign(name, saved_->scope().Get(from));
  }

 private:
  Executor* saved_;
  std::vector<FloatCast> casts_;
  std::vector<std::pair<std::string, std::string>> sources_;
};

// Returns the name in the scope of what the parameter becomes: master weights where there are some.
std::string LoadSource(const Source& source, SavedWeights* saved) {
  const std::string master = MasterName(source.name);
  const DType dtype = saved->Load(source.name, source.transpose).dtype();
  if (!IsHalf(dtype) || !saved->Contains(master)) return source.name;
  saved->Load(master, source.transpose);
  return master;
}

void CheckSame(const std::string& model, const std::string& parameter, const Source& source,
               const Tensor& from, const Tensor& to) {
  const std::string as = source.name == parameter ? "" : StrCat(" (", source.Text(), ")");
  SKIFF_ENFORCE(from.shape() == to.shape() && BeginEachOther(from.dtype(), to.dtype()),
                kInvalidArgument, model, ": parameter \"", parameter, "\"", as, " is ",
                from.dtype(), from.shape(), ", expected ", to.dtype(), to.shape(),
                ": the model has another configuration");
}

// Returns whether the parameter may begin anew, as the model's has another shape.
bool IsNewInAnotherShape(const std::string& parameter, const Dims& dims, const Tensor& to,
                         const TakeWeightsOptions& options) {
  return BeginsWithOneOf(parameter, options.new_parameters) &&
         !std::ranges::equal(dims, to.shape().dims());
}

Tensor TensorToWrite(const Scope& scope, const std::string& name, const RuledName& ruled) {
  const Tensor& tensor = scope.Get(name);
  if (!ruled.transpose) return tensor;
  return Transposed(CopyToCpu(tensor), StrCat("parameter \"", name, "\""));
}

}  // namespace

InitialWeights TakeWeights(const std::string& model, const Program& program, Scope* scope,
                           const TakeWeightsOptions& options) {
  SavedWeights saved(model);
  const NamedDims parameters = ParametersOf(program);
  const Sources sources(model, saved, parameters, options.rename);
  InitialWeights weights;
  weights.dropped = sources.dropped;
  if (!saved.has_states()) weights.unused = sources.unused;
  NamedDims missing;
  NewValues values(&saved.executor());
  for (const auto& var : program.root()->vars()) {
    if (!var->is_parameter) continue;
    const auto found = sources.of.find(var->name);
    const Tensor& to = scope->Get(var->name);
    if (found == sources.of.end() ||
        IsNewInAnotherShape(var->name, DimsOf(saved, found->second), to, options)) {
      weights.missing.push_back(var->name);
      missing.emplace(var->name, var->dims);
      continue;
    }
    const std::string source = LoadSource(found->second, &saved);
    CheckSame(model, var->name, found->second, saved.executor().scope().Get(found->second.name),
              to);
    values.Add(var->name, source, to.dtype());
    const std::string master = MasterName(var->name);
    if (IsHalf(to.dtype()) && scope->Find(master) != nullptr) {
      values.Add(master, source, DType::kFloat32);
    }
    weights.taken.push_back(var->name);
  }
  SKIFF_ENFORCE(!weights.taken.empty(), kInvalidArgument, model,
                ": the model has none of the parameters to train");
  CheckComplete(model, missing, weights.unused, options);
  sources.CheckTies(&saved);
  // Only now: an Error must leave the scope as it was.
  values.AssignTo(scope);
  return weights;
}

void WriteWeights(const std::string& path, const Program& program, const Scope& scope,
                  const std::vector<NameRule>& rename) {
  std::vector<std::string> names;
  for (const auto& [name, dims] : ParametersOf(program)) names.push_back(name);
  const std::vector<RuledName> ruled = ApplyRules(rename, names);
  TensorMap tensors;
  for (size_t i = 0; i < names.size(); ++i) {
    SKIFF_ENFORCE(!ruled[i].tie, kInvalidArgument, path, ": a rule ties parameter \"", names[i],
                  "\": expected rules that rename, transpose and drop");
    if (ruled[i].drop) continue;
    const bool is_new =
        tensors.emplace(ruled[i].name, TensorToWrite(scope, names[i], ruled[i])).second;
    SKIFF_ENFORCE(is_new, kInvalidArgument, path, ": two parameters become tensor \"",
                  ruled[i].name, "\"");
  }
  WriteSafetensors(path, tensors);
}

}  // namespace skiff::training
