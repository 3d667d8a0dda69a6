// What each communicator checks of messages, and the texts of Errors about messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace skiff {

// Throws an Error (kInvalidArgument) unless Exchange accepts the messages: ranks of the world, at
// most one message to each rank and one from each, no negative bytes; a message from the rank to
// itself is in both lists, with equal bytes.
void CheckMessages(const World& world, std::span<const OutMessage> out,
                   std::span<const InMessage> in);

// Copies the message of the rank to itself, if there is one.
void CopyOwnMessage(const World& world, std::span<const OutMessage> out,
                    std::span<const InMessage> in);

// For communicators of memory on the CPU: throw an Error (kInvalidArgument) if there is a stream,
// and CheckCpuSum if the count is negative; CheckCpuSum throws an Error (kUnimplemented) unless the
// dtype is float32 or float64.
void CheckNoStream(const DeviceStream* stream);
void CheckCpuSum(int64_t count, DType dtype, const DeviceStream* stream);

// Returns "rank 1 sends 8 bytes to rank 0, which expects 12".
std::string MismatchText(int32_t from, int64_t bytes, int32_t to, int64_t expected);

// Returns "rank 0 (host a) has waited 600 s for ranks 2, 3". The ranks that it names may be in any
// order, and may repeat; of many ranks it names the first and says how many there are. Without any,
// it says "other ranks".
std::string TimeLimitText(const World& world, double seconds, std::vector<int32_t> ranks);

}  // namespace skiff
