// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The Card of a device of this process, from what the CUDA driver says of it and from its profile. rigel/card.hpp has the table of cards.
#pragma once

#include <rigel/card.hpp>

namespace rigel::backends::cuda {

/// The device's Card, found once. It lives until the program ends. Throws what find_profile() throws.
const Card& card_of_device(int device);

}  // namespace rigel::backends::cuda
