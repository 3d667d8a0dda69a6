// A device without hardware, to test what the executor does with one.
//
// The device's memory can't be touched (PROT_NONE) except while streams run. Streams run as late as
// possible: when somebody waits, or up to an event that a stream waits for which somebody waits
// for. One thread at a time uses the device and all of its streams. So a host that touches the
// device's memory gets a fault of the processor, and a host that doesn't wait for a copy finds old
// bytes. The device runs the kernels of the CPU, on the addresses of its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "framework/base/place.h"
#include "framework/op/registry.h"
#include "memory/device.h"

namespace skiff::harness {

// Returns the device's place, which no real device has. The first call makes the device.
Place EmulatedPlace();

// From now on, each new stream of an emulated device runs its work as drawn from the seed: as late
// as possible, as soon as the work is appended, or at some of these moments. nullopt: as late as
// possible, as at first.
void DrawWhenStreamsRun(std::optional<uint64_t> seed);

// Returns a registry with all ops and kernels of `registry`, and with each kernel of the CPU once
// more, for EmulatedPlace(). `leave_out` says of which ops the device is to have no kernels.
std::unique_ptr<OpRegistry> RegistryWithEmulation(
    const OpRegistry& registry, const std::function<bool(const OpDef&)>& leave_out = {});

}  // namespace skiff::harness
