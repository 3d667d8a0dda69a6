#include "framework/tuning/kernel_tuner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/file.h"
#include "framework/op/kernel_choice.h"
#include "framework/op/registry.h"
#include "framework/tuning/kernel_timing.h"
#include "framework/tuning/machine_difference.h"
#include "framework/tuning/tuning_key.h"

namespace skiff {
namespace {

constexpr int64_t kCacheLimitBytes = int64_t{64} << 20;
// A difference of times below this is noise: no reason to leave the rule.
constexpr double kNoiseFactor = 1.05;

bool CanBeTriedOut(const OpContext& context) {
  const OpDef& def = context.def();
  const bool checks_data = std::ranges::any_of(def.inputs, [&](const SlotDef& slot) {
    return slot.checks_data && context.HasInput(slot.name);
  });
  // For selected rows and ragged tensors, the work depends on row numbers or offsets, which made-up
  // data doesn't have.
  const auto has_rows_of_its_own = [](const TensorMeta& meta) {
    return meta.lod_level > 0 || meta.is_selected_rows();
  };
  const bool is_ragged = std::ranges::any_of(context.inputs(), has_rows_of_its_own) ||
                         std::ranges::any_of(context.outputs(), has_rows_of_its_own);
  return context.place().is_cpu() && !def.random && !def.has_side_effect && !def.collective &&
         !checks_data && !is_ragged;
}

const KernelDef* FindByName(const std::vector<const KernelDef*>& kernels, const std::string& name) {
  const auto found = std::ranges::find(kernels, name, &KernelDef::name);
  return found == kernels.end() ? nullptr : *found;
}

std::vector<const KernelDef*> Candidates(const OpRegistry& registry, const OpContext& context,
                                         const KernelDef& rule) {
  // References are slow by design. A kernel with much scratch memory could raise the arena, which
  // its time doesn't show.
  std::vector<const KernelDef*> candidates{&rule};
  const int64_t modest = ModestScratchBytes(context);
  for (const KernelDef* kernel : registry.AcceptingKernels(context)) {
    if (kernel == &rule || kernel->is_reference) continue;
    if (ScratchBytes(*kernel, context) <= modest) candidates.push_back(kernel);
  }
  return candidates;
}

const KernelDef& KernelOf(const OpRegistry& registry, const OpContext& context,
                          const std::string& name) {
  const std::vector<const KernelDef*> accepting = registry.AcceptingKernels(context);
  const KernelDef* kernel = FindByName(accepting, name);
  if (kernel != nullptr) return *kernel;
  std::vector<std::string> names;
  for (const KernelDef* other : accepting) names.push_back(other->name);
  Throw(ErrorCode::kFailedPrecondition, "the choices of an earlier run name the kernel \"", name,
        "\", which isn't there or doesn't take these shapes and layouts; these do: ",
        Join(names, ", "));
}

// The first name is the rule's. It stays unless another is faster by more than noise.
KernelChoice Fastest(const std::vector<std::string>& names, const std::vector<double>& seconds) {
  const auto best = std::ranges::min_element(seconds);
  const bool rule_stays = seconds.front() <= kNoiseFactor * *best;
  KernelChoice choice;
  choice.kernel = names[rule_stays ? size_t{0} : static_cast<size_t>(best - seconds.begin())];
  for (size_t i = 0; i < names.size(); ++i) choice.seconds[names[i]] = seconds[i];
  return choice;
}

// Returns whether the code is of an Error about the contents of a cache file: no choices, too long,
// or of another version.
bool IsDamage(ErrorCode code) {
  return code == ErrorCode::kDataLoss || code == ErrorCode::kOutOfRange ||
         code == ErrorCode::kUnimplemented;
}

std::string TimesText(const KernelChoice& choice) {
  std::vector<std::string> texts;
  for (const auto& [kernel, seconds] : choice.seconds) {
    texts.push_back(StrCat(kernel, " ", FormatGeneral(seconds * 1e3, 4), " ms"));
  }
  return Join(texts, ", ");
}

}  // namespace

class KernelTuner::Implementation {
 public:
  Implementation(const OpRegistry& registry, KernelTunerOptions options);

  const OpRegistry& registry() const { return registry_; }
  const KernelDef& Choose(const TuningRequest& request);
  void FixChoices(KernelChoices choices);
  KernelChoices choices() const;
  std::string Summary() const;
  const std::map<std::string, TunedKernel>& decisions() const { return decisions_; }

 private:
  const KernelChoice* FixedChoice(const std::string& key) const;
  // Returns nullptr if there are fixed choices and this isn't one.
  const TunedKernel* Decide(const TuningRequest& request,
                            const std::vector<const KernelDef*>& candidates);
  void Remember(const std::string& key, const TunedKernel& decision);
  KernelChoices ReadCache();
  void WriteCache();
  void WarnOfUnknown(const std::string& op);
  void Log(const std::string& line) const;
  void Warn(const std::string& message) const;

  const OpRegistry& registry_;
  KernelTunerOptions options_;
  std::map<std::string, std::string> machine_;
  std::optional<std::map<std::string, KernelChoice>> fixed_;
  std::map<std::string, KernelChoice, std::less<>> fixed_for_any_threads_;  // WithoutThreads
  bool warned_of_unknown_ = false;
  bool warned_of_damage_ = false;
  std::map<std::string, KernelChoice> remembered_;  // of the cache file, and timed
  std::map<std::string, TunedKernel> decisions_;
};

KernelTuner::KernelTuner(const OpRegistry& registry, KernelTunerOptions options)
    : implementation_(std::make_unique<Implementation>(registry, std::move(options))) {}

KernelTuner::~KernelTuner() = default;

const OpRegistry& KernelTuner::registry() const { return implementation_->registry(); }
const KernelDef& KernelTuner::Choose(const TuningRequest& request) {
  return implementation_->Choose(request);
}
void KernelTuner::FixChoices(KernelChoices choices) {
  implementation_->FixChoices(std::move(choices));
}
KernelChoices KernelTuner::choices() const { return implementation_->choices(); }
std::string KernelTuner::Summary() const { return implementation_->Summary(); }
const std::map<std::string, TunedKernel>& KernelTuner::decisions() const {
  return implementation_->decisions();
}

KernelTuner::Implementation::Implementation(const OpRegistry& registry, KernelTunerOptions options)
    : registry_(registry), options_(std::move(options)), machine_(registry.libraries()) {
  if (options_.timer == nullptr) options_.timer = TimeKernels;
  // Times hold for a processor and for the versions and instruction sets of the libraries.
  machine_["cpu"] = CpuModelName();
  KernelChoices cached = ReadCache();
  const std::string difference = MachineDifference(machine_, cached);
  if (difference.empty()) {
    remembered_ = std::move(cached.by_key);
  } else {
    Warn(StrCat(options_.cache_file, " is of another machine and isn't used: ", difference));
  }
}

const KernelDef& KernelTuner::Implementation::Choose(const TuningRequest& request) {
  const OpContext& context = request.context;
  const KernelDef& rule = KernelByRule(registry_, context);
  if (!CanBeTriedOut(context)) return rule;
  const std::vector<const KernelDef*> candidates = Candidates(registry_, context, rule);
  if (candidates.size() == 1 && !fixed_) return rule;
  const TunedKernel* decision = Decide(request, candidates);
  if (decision == nullptr) return rule;
  // Not from `candidates`: a fixed kernel may be a reference.
  return KernelOf(registry_, context, decision->choice.kernel);
}

const TunedKernel* KernelTuner::Implementation::Decide(
    const TuningRequest& request, const std::vector<const KernelDef*>& candidates) {
  std::vector<std::string> names;
  for (const KernelDef* kernel : candidates) names.push_back(kernel->name);
  const std::string key = TuningKey(request);
  TunedKernel decision{.op = ShortTuningKey(request), .rule = names.front(), .choice = {}};
  const auto remembered = remembered_.find(key);
  if (fixed_) {
    const KernelChoice* fixed = FixedChoice(key);
    // Nothing is timed any more, even for ops that the fixed choices don't know: results must not
    // depend on new timings.
    if (fixed == nullptr) {
      if (names.size() > 1) WarnOfUnknown(decision.op);
      return nullptr;
    }
    decision.choice = *fixed;
  } else if (remembered != remembered_.end() &&
             std::ranges::count(names, remembered->second.kernel) > 0) {
    decision.choice = remembered->second;
  } else {
    // Also if the remembered candidate is gone: it was from another version of Skiff.
    decision.choice = Fastest(names, options_.timer(request, candidates));
    decision.is_timed = true;
    Remember(key, decision);
  }
  // A decision that is met again keeps its mark is_timed.
  TunedKernel& known = decisions_[key];
  if (known.choice != decision.choice) known = std::move(decision);
  return &known;
}

const KernelChoice* KernelTuner::Implementation::FixedChoice(const std::string& key) const {
  // First for the same number of threads. A choice that was made for another number counts as well,
  // so that a training can be resumed with it.
  if (const auto found = fixed_->find(key); found != fixed_->end()) return &found->second;
  const auto found = fixed_for_any_threads_.find(WithoutThreads(key));
  return found == fixed_for_any_threads_.end() ? nullptr : &found->second;
}

void KernelTuner::Implementation::Remember(const std::string& key, const TunedKernel& decision) {
  remembered_[key] = decision.choice;
  WriteCache();
  Log(StrCat(decision.op, ": ", decision.choice.kernel, " (", TimesText(decision.choice), ")"));
}

void KernelTuner::Implementation::FixChoices(KernelChoices choices) {
  const std::string difference = MachineDifference(machine_, choices);
  if (!difference.empty()) {
    Warn("the kernels were chosen on another machine and may not be the fastest here: " +
         difference);
  }
  fixed_ = std::move(choices.by_key);
  fixed_for_any_threads_.clear();
  for (const auto& [key, choice] : *fixed_) {
    fixed_for_any_threads_.emplace(WithoutThreads(key), choice);
  }
  // Decisions of before would otherwise be saved beside the fixed choices.
  decisions_.clear();
}

KernelChoices KernelTuner::Implementation::choices() const {
  KernelChoices all{.machine = machine_, .by_key = {}};
  if (fixed_) all.by_key = *fixed_;
  for (const auto& [key, decision] : decisions_) all.by_key.emplace(key, decision.choice);
  return all;
}

std::string KernelTuner::Implementation::Summary() const {
  const auto count = [this](const auto& is_counted) {
    return std::ranges::count_if(decisions_,
                                 [&](const auto& known) { return is_counted(known.second); });
  };
  const auto timed = count([](const TunedKernel& kernel) { return kernel.is_timed; });
  const auto changed =
      count([](const TunedKernel& kernel) { return kernel.choice.kernel != kernel.rule; });
  return StrCat(decisions_.size(), " kernels tuned, ", timed, " of them timed now, ", changed,
                " not those of the rule");
}

KernelChoices KernelTuner::Implementation::ReadCache() {
  const std::string& path = options_.cache_file;
  if (path.empty() || !PathExists(path)) return {.machine = machine_, .by_key = {}};
  try {
    return ParseKernelChoices(ReadFile(path, kCacheLimitBytes), path);
  } catch (const Error& error) {
    // A damaged cache only costs time. But a file that can't be read can't be written either, and
    // that is an Error.
    if (!IsDamage(error.code())) throw;
    if (!std::exchange(warned_of_damage_, true)) {
      Warn(StrCat("the cache of kernel choices is damaged and is made anew: ", error.what()));
    }
    return {.machine = machine_, .by_key = {}};
  }
}

void KernelTuner::Implementation::WriteCache() {
  if (options_.cache_file.empty()) return;
  KernelChoices others = ReadCache();
  // Other processes may have added choices since. merge keeps our own where both have one.
  if (others.machine == machine_) remembered_.merge(others.by_key);
  AtomicWriteFile(options_.cache_file,
                  PrintKernelChoices({.machine = machine_, .by_key = remembered_}));
}

void KernelTuner::Implementation::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void KernelTuner::Implementation::WarnOfUnknown(const std::string& op) {
  if (warned_of_unknown_) return;
  warned_of_unknown_ = true;
  Warn(StrCat("the choices of an earlier run don't know ", op,
              ", and perhaps others: by rule, so that results may differ from that run's"));
}

void KernelTuner::Implementation::Warn(const std::string& message) const {
  if (options_.warn) options_.warn(message);
}

}  // namespace skiff
