export { blobKinds, prepareBlob, verifiedBlob } from "./model/blob.ts";
export type {
  BlobEncoding,
  BlobKind,
  BlobProfile,
  NewBlob,
  StoredBlob,
} from "./model/blob.ts";
export { artifacts } from "./stores/artifact/artifacts.ts";
export type {
  Artifacts,
  ListArtifactsOptions,
} from "./stores/artifact/artifacts.ts";
export { putArtifact, removeArtifact } from "./stores/artifact/pointer.ts";
export type {
  ArtifactName,
  ArtifactPage,
  ListedArtifact,
  NewArtifact,
} from "./stores/artifact/pointer.ts";
export { blobs } from "./stores/blob/blobs.ts";
export type {
  BlobKeepsOptions,
  Blobs,
  LoadedBlob,
} from "./stores/blob/blobs.ts";
export type { BlobEnvironment, BlobPutOptions } from "./stores/blob/context.ts";
export { keepBlob, releaseBlob } from "./stores/blob/keep.ts";
export type { BlobKeep, BlobKeepRef, NewBlobKeep } from "./stores/blob/keep.ts";
export { putBlob, putBlobs } from "./stores/blob/put.ts";
export { readBlob, readBlobs } from "./stores/blob/read.ts";
export type { BlobRoot } from "./stores/blob/roots.ts";
export type { BlobSizes } from "./stores/blob/scan.ts";
export type {
  CheckedTable,
  MaintenanceCheckReport,
  MaintenanceCheckOptions,
} from "./stores/maintenance/check.ts";
export type {
  CollectReport,
  MaintenanceCollectOptions,
} from "./stores/maintenance/collect.ts";
export { maintenance } from "./stores/maintenance/maintenance.ts";
export type {
  Maintenance,
  MaintenanceEnvironment,
} from "./stores/maintenance/maintenance.ts";
export type {
  SizeReport,
  MaintenanceSizesOptions,
} from "./stores/maintenance/sizes.ts";
