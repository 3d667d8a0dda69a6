#include "framework/executor/run/plan_fetches.h"

#include <utility>

#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/executor/storage/storage.h"

namespace skiff {
namespace {

// Returns whether a fetch is the value itself and no copy of it. The stacks of loops, which later
// segments read, are arrays.
bool IsShared(const PlanValue& value) {
  return value.storage == Storage::kKernelOwned || value.meta.is_array;
}

}  // namespace

PlanFetches::PlanFetches(const Plan& plan, const BoundValues& values, DeviceLink* link)
    : plan_(plan), values_(values), link_(*link), copied_(link->MakeEvent()) {}

void PlanFetches::Make() {
  fetches_.resize(plan_.fetches.size());
  lods_.resize(plan_.fetches.size());
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const PlanValue& planned = plan_[plan_.fetches[i]];
    if (!IsShared(planned)) MakeOne(planned, *values_.Of(plan_.fetches[i]), &fetches_[i]);
  }
}

void PlanFetches::MakeOne(const PlanValue& planned, const Tensor& value, Tensor* fetch) {
  // A feed has no tensor before the first run.
  const Shape& shape = value.has_data() ? value.shape() : planned.meta.shape;
  const DType dtype = value.has_data() ? value.dtype() : planned.meta.dtype;
  if (fetch->has_data() && fetch->shape() == shape) return;
  const int64_t bytes = StorageBytes(shape, dtype, planned.meta.layout);
  // A copy that the caller has made of a fetch with other rows keeps the values of its run.
  if (fetch->has_data() && fetch->buffer().use_count() == 1 &&
      DifferInRowsAlone(fetch->shape(), shape) && fetch->buffer()->bytes() >= bytes) {
    return fetch->SetRows(shape[0]);
  }
  // The last run's copy to the memory that goes now may be under way.
  if (fetch->has_data()) link_.Wait();
  *fetch = value.place().is_cpu()
               ? Tensor(shape, dtype, Place::Cpu(), planned.meta.layout)
               : Tensor(shape, dtype, std::make_shared<Buffer>(link_.host_allocator(), bytes), 0,
                        planned.meta.layout);
}

void PlanFetches::Copy() {
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const Tensor& value = *values_.Of(plan_.fetches[i]);
    if (IsShared(plan_[plan_.fetches[i]])) {
      fetches_[i] = value;
      continue;
    }
    values_.Await(value);
    link_.Copy(value, &fetches_[i]);
    CopyLoD(value, i);
  }
  link_.Record(copied_.get());
}

void PlanFetches::CopyLoD(const Tensor& value, size_t index) {
  Tensor& fetch = fetches_[index];
  if (fetch.lod() == value.lod()) return;
  // A LoD of its own, since the next run changes the plan's. A copy that the caller has made of the
  // fetch keeps that of its run.
  std::shared_ptr<LoD>& lod = lods_[index];
  fetch.ShareLoD(nullptr);
  if (lod == nullptr || lod.use_count() > 1) {
    const auto& planned = plan_[plan_.fetches[index]].meta.lod;
    lod = std::make_shared<LoD>(RoomForLoD(planned ? planned->offsets : value.lod()));
  }
  *lod = value.lod();
  fetch.ShareLoD(lod);
}

std::vector<Tensor> PlanFetches::Take() {
  lods_.clear();
  return std::exchange(fetches_, {});
}

}  // namespace skiff
