// The flags of the fuzz tests. The library has their main function, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/fuzz/fuzz_processes.h"

namespace skiff::fuzz {

// Returns --mutant, the number of the only mutant to look at; nothing without the flag.
std::optional<uint64_t> OnlyMutant();

// Runs --mutants mutants from --first_mutant on in --jobs processes. Each failure is a failure of
// the current test. Prints how many mutants came to which end. `reader` names the part that
// refuses mutants first: "the codec".
FuzzResult RunMutantsOfFlags(const MutantCheck& check, const std::string& reader);

}  // namespace skiff::fuzz
