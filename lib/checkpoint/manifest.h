#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint_store.h"

namespace tetrion {

// The text of manifest.json and of a checkpoint's metadata.

std::string EncodeManifest(const std::vector<ManifestEntry>& entries);
// Throws Error(kConfig) naming `origin` when the text is not a manifest or names a file outside its
// folder.
std::vector<ManifestEntry> DecodeManifest(const std::string& text, const std::string& origin);

std::map<std::string, std::string> MetadataOf(const CheckpointInfo& info);
// Throws Error(kConfig) naming `origin` and the field that is missing or unreadable.
CheckpointInfo InfoOf(const std::map<std::string, std::string>& metadata,
                      const std::string& origin);

// The entry with the best mean return, the newest among equals; null without entries.
const ManifestEntry* BestOf(const std::vector<ManifestEntry>& entries);

}  // namespace tetrion
