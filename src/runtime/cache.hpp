// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The disk cache: one file for each object, named by the digest of all that the object depends on. RIGEL_CACHE=off switches it
// off; RIGEL_CACHE_DIR names its folder, which is else $XDG_CACHE_HOME/rigel/texts or
// ~/.cache/rigel/texts.
#pragma once

#include "digest.hpp"

#include <optional>
#include <string>

namespace rigel::runtime {

/// The object of a key; nothing if there is no file for it, or if the file is truncated, changed, of another key, or not the
/// user's own.
std::optional<std::string> read_cached(const Digest& key);

/// Writes it. That this fails, or that the folder is one that others can write, is no error.
void write_cached(const Digest& key, const std::string& object);

}  // namespace rigel::runtime
