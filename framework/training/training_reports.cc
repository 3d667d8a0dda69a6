#include "framework/training/training_reports.h"

#include <algorithm>
#include <map>
#include <vector>

#include "framework/analysis/memory_report.h"
#include "framework/analysis/ops_on_host.h"
#include "framework/analysis/widened_ops.h"
#include "framework/base/number_text.h"
#include "framework/base/str_cat.h"
#include "framework/builder/update_condition.h"
#include "framework/precision/loss_scaling.h"

namespace skiff::training {
namespace {

// "2 dropout, mean"
std::string TextOfCounts(const std::map<std::string, int64_t>& counts) {
  std::vector<std::string> texts;
  for (const auto& [type, count] : counts) {
    texts.push_back(count == 1 ? type : StrCat(count, " ", type));
  }
  return Join(texts, ", ");
}

}  // namespace

void ReportInitialWeights(const InitialWeights& weights, const std::string& model,
                          std::ostream* out) {
  *out << weights.taken.size() << " parameters begin with those of " << model;
  if (!weights.missing.empty()) {
    *out << "; " << weights.missing.size()
         << " that it lacks, or has in another shape, are new: " << Join(weights.missing, ", ");
  }
  *out << std::endl;
}

void ReportPlan(const Plan& plan, const Place& place, std::ostream* out) {
  // Each such op moves its arguments from the device and its results back.
  const std::string on_host = TextOfCounts(OpsOnHost(plan));
  if (!on_host.empty()) {
    *out << "warning: these ops don't run on " << place << ", but on the CPU: " << on_host
         << std::endl;
  }
  const std::string widened = TextOfCounts(WidenedOps(plan));
  if (!widened.empty()) {
    *out << "in float32, between casts, for want of kernels that take half: " << widened
         << std::endl;
  }
  const std::string again = RecomputationText(plan.recomputed);
  if (!again.empty()) *out << "memory: " << again << std::endl;
}

void ReportEpoch(const TrainingRecord& record, const TrainingMetrics& metrics,
                 const TrainerOptions& options, const Scope& scope, std::ostream* out) {
  *out << "epoch " << record.epoch << "/" << options.epochs << "  " << metrics.Text(record.train)
       << "  |  validation " << metrics.Text(record.validation);
  if (!record.averaged.empty()) *out << "  |  averaged " << metrics.Text(record.averaged);
  const Tensor* skipped = scope.Find(kSkippedUpdates);
  if (skipped != nullptr) {
    *out << "  |  " << CopyToCpu(*skipped).Item<int64_t>() << " updates skipped so far";
  }
  const Tensor* scale = scope.Find(kLossScale);
  if (scale != nullptr) *out << "  |  loss scale " << CopyToCpu(*scale).Item<float>();
  *out << "  |  " << FormatFixed(record.samples_per_second, 0) << " " << options.samples << "/s"
       << std::endl;
}

void ReportPreparation(const PreparationStatistics& preparation, double seconds,
                       std::ostream* out) {
  constexpr int64_t kUsual = 2;
  if (preparation.plans <= kUsual) return;
  const double spent = preparation.plan_seconds + preparation.kernel_seconds;
  *out << preparation.plans << " plans and " << preparation.kernels << " kernels prepared in "
       << FormatFixed(spent, 2) << " s, " << FormatFixed(100 * spent / std::max(seconds, spent), 1)
       << " % of the time\n";
}

}  // namespace skiff::training
