#include "framework/tuning/kernel_tuner.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff {
namespace {

constexpr int64_t kCacheLimitBytes = int64_t{64} << 20;

bool CanBeTriedOut(const OpContext& context) {
  const OpDef& def = context.def();
  const bool checks_data = std::ranges::any_of(def.inputs, [&](const SlotDef& slot) {
    return slot.checks_data && context.HasInput(slot.name);
  });
  // What a kernel does with them hangs on their row numbers.
  const auto has_rows_of_its_own = [](const TensorMeta& meta) {
    return meta.lod_level > 0 || meta.is_selected_rows();
  };
  const bool is_ragged = std::ranges::any_of(context.inputs(), has_rows_of_its_own) ||
                         std::ranges::any_of(context.outputs(), has_rows_of_its_own);
  return context.place().is_cpu() && !def.random && !def.has_side_effect && !checks_data &&
         !is_ragged;
}

const KernelDef* FindByName(const std::vector<const KernelDef*>& kernels, const std::string& name) {
  const auto found = std::ranges::find(kernels, name, &KernelDef::name);
  return found == kernels.end() ? nullptr : *found;
}

// The first name, the rule's, stays unless another is faster by more than noise.
KernelChoice Fastest(const std::vector<std::string>& names, const std::vector<double>& seconds) {
  const auto best = std::ranges::min_element(seconds);
  const bool rule_stays = seconds.front() <= KernelTuner::kNoiseFactor * *best;
  KernelChoice choice;
  choice.kernel = names[rule_stays ? size_t{0} : static_cast<size_t>(best - seconds.begin())];
  for (size_t i = 0; i < names.size(); ++i) choice.seconds[names[i]] = seconds[i];
  return choice;
}

std::optional<double> SecondsOf(const TunedKernel* decision) {
  if (decision == nullptr) return std::nullopt;
  const KernelChoice& choice = decision->choice;
  const auto found = choice.seconds.find(choice.kernel);
  SKIFF_ENFORCE(found != choice.seconds.end(), kInvalidArgument, "a choice of the kernel \"",
                choice.kernel, "\" without its time");
  return found->second;
}

std::string TimesText(const KernelChoice& choice) {
  std::vector<std::string> texts;
  for (const auto& [kernel, seconds] : choice.seconds) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4g ms", seconds * 1e3);
    texts.push_back(StrCat(kernel, " ", text));
  }
  return Join(texts, ", ");
}

}  // namespace

KernelTuner::KernelTuner(const OpRegistry& registry, KernelTunerOptions options)
    : registry_(registry), options_(std::move(options)), machine_(registry.libraries()) {
  machine_["cpu"] = CpuModelName();
  KernelChoices cached = ReadCache();
  const std::string difference = MachineDifference(machine_, cached);
  if (difference.empty()) {
    remembered_ = std::move(cached.by_key);
  } else {
    Warn(StrCat(options_.cache_file, " is of another machine and isn't used: ", difference));
  }
}

const KernelDef& KernelTuner::Choose(const TuningRequest& request) {
  const OpContext& context = request.context;
  const KernelDef& rule = registry_.SelectKernel(context);
  if (!CanBeTriedOut(context)) return rule;
  const std::vector<const KernelDef*> candidates = Candidates(context, rule);
  if (candidates.size() == 1 && !fixed_) return rule;
  TunedKernel* decision = Decide(request, candidates);
  if (decision == nullptr) return rule;
  decision->runs = true;
  // A fixed one may be a reference.
  return KernelOf(context, decision->choice.kernel);
}

std::optional<double> KernelTuner::Seconds(const TuningRequest& request) {
  const KernelDef& rule = registry_.SelectKernel(request.context);
  if (!CanBeTriedOut(request.context)) return std::nullopt;
  return SecondsOf(Decide(request, Candidates(request.context, rule)));
}

std::optional<double> KernelTuner::SecondsOfCopy(const TensorMeta& from, Layout to) {
  return SecondsOf(Decide(CopyTuningKey(from, to),
                          StrCat("copy ", from.shape, " ", from.layout, " -> ", to), {"copy"},
                          [&] { return std::vector<double>{options_.copy_timer(from, to)}; }));
}

TunedKernel* KernelTuner::Decide(const TuningRequest& request,
                                 const std::vector<const KernelDef*>& candidates) {
  std::vector<std::string> names;
  for (const KernelDef* kernel : candidates) names.push_back(kernel->name);
  return Decide(TuningKey(request), ShortTuningKey(request), names,
                [&] { return options_.timer(request, candidates); });
}

TunedKernel* KernelTuner::Decide(const std::string& key, const std::string& op,
                                 const std::vector<std::string>& names, const Timer& timer) {
  TunedKernel decision{.op = op, .rule = names.front(), .choice = {}};
  const auto remembered = remembered_.find(key);
  if (fixed_) {
    const KernelChoice* fixed = FixedChoice(key);
    if (fixed == nullptr) {
      WarnOfUnknown(op, names);
      return nullptr;
    }
    decision.choice = *fixed;
  } else if (remembered != remembered_.end() &&
             std::ranges::count(names, remembered->second.kernel) > 0) {
    decision.choice = remembered->second;
  } else {
    // A remembered candidate that is gone was another version's.
    decision.choice = Fastest(names, timer());
    decision.is_timed = true;
    Remember(key, decision);
  }
  // One that is met again keeps its marks.
  TunedKernel& known = decisions_[key];
  if (known.choice != decision.choice) known = std::move(decision);
  return &known;
}

std::vector<const KernelDef*> KernelTuner::Candidates(const OpContext& context,
                                                      const KernelDef& rule) const {
  std::vector<const KernelDef*> candidates{&rule};
  for (const KernelDef* kernel : registry_.AcceptingKernels(context)) {
    if (kernel != &rule && !kernel->is_reference) candidates.push_back(kernel);
  }
  return candidates;
}

const KernelChoice* KernelTuner::FixedChoice(const std::string& key) const {
  if (const auto found = fixed_->find(key); found != fixed_->end()) return &found->second;
  const auto found = fixed_for_any_threads_.find(WithoutThreads(key));
  return found == fixed_for_any_threads_.end() ? nullptr : &found->second;
}

const KernelDef& KernelTuner::KernelOf(const OpContext& context, const std::string& name) const {
  const std::vector<const KernelDef*> accepting = registry_.AcceptingKernels(context);
  const KernelDef* kernel = FindByName(accepting, name);
  if (kernel != nullptr) return *kernel;
  std::vector<std::string> names;
  for (const KernelDef* other : accepting) names.push_back(other->name);
  Throw(ErrorCode::kFailedPrecondition, "the choices of an earlier run name the kernel \"", name,
        "\", which isn't there or doesn't take these shapes and layouts; these do: ",
        Join(names, ", "));
}

void KernelTuner::Remember(const std::string& key, const TunedKernel& decision) {
  remembered_[key] = decision.choice;
  WriteCache();
  Log(StrCat(decision.op, ": ", decision.choice.kernel, " (", TimesText(decision.choice), ")"));
}

void KernelTuner::FixChoices(KernelChoices choices) {
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
  decisions_.clear();
}

KernelChoices KernelTuner::choices() const {
  KernelChoices all{.machine = machine_, .by_key = {}};
  if (fixed_) all.by_key = *fixed_;
  for (const auto& [key, decision] : decisions_) all.by_key.emplace(key, decision.choice);
  return all;
}

std::string KernelTuner::Summary() const {
  int64_t kernels = 0;
  int64_t kernels_timed = 0;
  int64_t changed = 0;
  int64_t others = 0;
  int64_t others_timed = 0;
  for (const auto& [key, decision] : decisions_) {
    const bool is_choice = decision.runs && decision.choice.seconds.size() > 1;
    (is_choice ? kernels : others) += 1;
    if (decision.is_timed) (is_choice ? kernels_timed : others_timed) += 1;
    if (is_choice && decision.choice.kernel != decision.rule) ++changed;
  }
  std::string text = StrCat(kernels, " kernels tuned, ", kernels_timed, " of them timed now, ",
                            changed, " not those of the rule");
  if (others > 0) {
    text += StrCat("; ", others, " other times for layouts, ", others_timed, " of them taken now");
  }
  return text;
}

KernelChoices KernelTuner::ReadCache() const {
  const std::string& path = options_.cache_file;
  if (path.empty() || !PathExists(path)) return {.machine = machine_, .by_key = {}};
  return ParseKernelChoices(ReadFile(path, kCacheLimitBytes), path);
}

void KernelTuner::WriteCache() {
  if (options_.cache_file.empty()) return;
  KernelChoices others = ReadCache();
  if (others.machine == machine_) remembered_.merge(others.by_key);
  AtomicWriteFile(options_.cache_file,
                  PrintKernelChoices({.machine = machine_, .by_key = remembered_}));
}

void KernelTuner::Log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void KernelTuner::WarnOfUnknown(const std::string& op, const std::vector<std::string>& names) {
  // Nothing to decide, and for layouts the rule stays.
  if (names.size() == 1 || warned_of_unknown_) return;
  warned_of_unknown_ = true;
  Warn(StrCat("the choices of an earlier run don't know ", op,
              ", and perhaps others: by rule, so that results may differ from that run's"));
}

void KernelTuner::Warn(const std::string& message) const {
  if (options_.warn) options_.warn(message);
}

}  // namespace skiff
