#include "framework/tuning/kernel_tuner.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff {
namespace {

// Below this timings repeat too badly to leave the rule for them.
constexpr double kTie = 1.05;
constexpr int64_t kCacheLimitBytes = int64_t{64} << 20;

bool CanBeTriedOut(const OpContext& context) {
  const OpDef& def = context.def();
  const bool checks_data = std::ranges::any_of(def.inputs, [&](const SlotDef& slot) {
    return slot.checks_data && context.HasInput(slot.name);
  });
  const bool is_ragged = std::ranges::any_of(
      context.inputs(), [](const TensorMeta& meta) { return meta.lod_level > 0; });
  return context.place().is_cpu() && !def.random && !def.has_side_effect && !checks_data &&
         !is_ragged;
}

const KernelDef* FindByName(const std::vector<const KernelDef*>& kernels, const std::string& name) {
  const auto found = std::ranges::find(kernels, name, &KernelDef::name);
  return found == kernels.end() ? nullptr : *found;
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
  const std::string key = TuningKey(request);
  const std::vector<const KernelDef*> candidates = Candidates(context, rule);
  TunedKernel decision{.op = ShortTuningKey(request), .rule = rule.name, .choice = {}};
  const KernelDef* kernel = nullptr;
  if (const auto fixed = fixed_.find(key); fixed != fixed_.end()) {
    kernel = &FixedKernel(context, fixed->second.kernel);
    decision.choice = fixed->second;
  } else if (candidates.size() == 1) {
    return rule;
  } else if (const auto found = remembered_.find(key); found != remembered_.end()) {
    // A candidate that is gone was another version's.
    kernel = FindByName(candidates, found->second.kernel);
    decision.choice = found->second;
  }
  if (kernel == nullptr) {
    decision.choice = Time(request, candidates);
    decision.is_timed = true;
    kernel = FindByName(candidates, decision.choice.kernel);
    Remember(key, decision);
  }
  // One that is met again keeps its is_timed.
  TunedKernel& known = decisions_[key];
  if (known.choice != decision.choice) known = std::move(decision);
  return *kernel;
}

std::vector<const KernelDef*> KernelTuner::Candidates(const OpContext& context,
                                                      const KernelDef& rule) const {
  std::vector<const KernelDef*> candidates{&rule};
  for (const KernelDef* kernel : registry_.AcceptingKernels(context)) {
    if (kernel != &rule && !kernel->is_reference) candidates.push_back(kernel);
  }
  return candidates;
}

const KernelDef& KernelTuner::FixedKernel(const OpContext& context, const std::string& name) const {
  const std::vector<const KernelDef*> accepting = registry_.AcceptingKernels(context);
  const KernelDef* kernel = FindByName(accepting, name);
  if (kernel != nullptr) return *kernel;
  std::vector<std::string> names;
  for (const KernelDef* other : accepting) names.push_back(other->name);
  Throw(ErrorCode::kFailedPrecondition, "the choices of an earlier run name the kernel \"", name,
        "\", which isn't there or doesn't take these shapes and layouts; these do: ",
        Join(names, ", "));
}

KernelChoice KernelTuner::Time(const TuningRequest& request,
                               const std::vector<const KernelDef*>& candidates) const {
  const std::vector<double> seconds = options_.timer(request, candidates);
  const auto best = std::ranges::min_element(seconds);
  const bool rule_stays = seconds.front() <= kTie * *best;
  const auto chosen = rule_stays ? size_t{0} : static_cast<size_t>(best - seconds.begin());
  KernelChoice choice;
  choice.kernel = candidates[chosen]->name;
  for (size_t i = 0; i < candidates.size(); ++i) choice.seconds[candidates[i]->name] = seconds[i];
  return choice;
}

void KernelTuner::Remember(const std::string& key, const TunedKernel& decision) {
  remembered_[key] = decision.choice;
  WriteCache();
  if (!options_.log) return;
  options_.log(
      StrCat(decision.op, ": ", decision.choice.kernel, " (", TimesText(decision.choice), ")"));
}

void KernelTuner::FixChoices(KernelChoices choices) {
  const std::string difference = MachineDifference(machine_, choices);
  if (!difference.empty()) {
    Warn("the kernels were chosen on another machine and may not be the fastest here: " +
         difference);
  }
  fixed_ = std::move(choices.by_key);
}

KernelChoices KernelTuner::choices() const {
  KernelChoices all{.machine = machine_, .by_key = fixed_};
  for (const auto& [key, decision] : decisions_) all.by_key.emplace(key, decision.choice);
  return all;
}

std::string KernelTuner::Summary() const {
  int64_t timed = 0;
  int64_t changed = 0;
  for (const auto& [key, decision] : decisions_) {
    timed += decision.is_timed ? 1 : 0;
    changed += decision.choice.kernel != decision.rule ? 1 : 0;
  }
  return StrCat(decisions_.size(), " kernels tuned, ", timed, " of them timed now, ", changed,
                " not those of the rule");
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

void KernelTuner::Warn(const std::string& message) const {
  if (options_.warn) options_.warn(message);
}

}  // namespace skiff
