#include "tests/operators/collective/rank_run.h"

#include <memory>

#include "framework/base/error.h"
#include "framework/comm/gather.h"
#include "framework/comm/nccl_communicator.h"
#include "memory/cuda_device.h"
#include "tests/harness/cuda_kernels.h"
#include "tests/harness/thread_ranks.h"

namespace skiff::harness {
namespace {

void RunRank(const Op& op, const NamedTensors& inputs, const OpSettings& settings, size_t rank,
             RankRun* run) {
  PreparedOp prepared(DefaultOpRegistry(), op, inputs, settings);
  // Scratch memory and outputs hold NaN before the run.
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  prepared.Wait();
  for (const std::string& fault : prepared.Faults()) Throw(ErrorCode::kFailedPrecondition, fault);
  run->outputs[rank] = prepared.Outputs();
  run->bytes_sent[rank] = settings.communicator->bytes_sent();
}

}  // namespace

RankRun RunOpOnRanks(const Op& op, const std::vector<NamedTensors>& inputs, uint64_t seed,
                     const OpSettings& settings) {
  RankRun run;
  run.outputs.resize(inputs.size());
  run.bytes_sent.resize(inputs.size());
  run.errors = RunOnThreadRanks(static_cast<int32_t>(inputs.size()),
                                {.time_limit = 60, .seed = seed}, [&](Communicator* host) {
                                  const int32_t rank = host->world().rank;
                                  const auto index = static_cast<size_t>(rank);
                                  OpSettings own = settings;
                                  own.communicator = host;
                                  if (settings.place.is_cpu())
                                    return RunRank(op, inputs[index], own, index, &run);
                                  own.place = Place::Cuda(rank);
                                  const auto device = MakeNcclRank(
                                      std::shared_ptr<Communicator>(std::shared_ptr<void>(), host),
                                      own.place, 60);
                                  own.communicator = device.get();
                                  RunRank(op, inputs[index], own, index, &run);
                                  // Before a communicator of NCCL ends, the work of all ranks must
                                  // have ended.
                                  GatherNumbers<int32_t>(host, rank);
                                });
  return run;
}

std::vector<Place> PlacesOfRanks(int32_t ranks) {
  std::vector<Place> places = {Place::Cpu()};
  const bool has_kernels = HasAnyCudaKernels(DefaultOpRegistry());
  if (has_kernels && CudaDeviceCount() >= ranks) places.push_back(Place::Cuda());
  return places;
}

}  // namespace skiff::harness
