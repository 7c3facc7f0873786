export { blobKinds } from "./model/blob.ts";
export type { BlobKind, BlobProfile } from "./model/blob.ts";
export type { AttachmentSizes } from "./stores/attachment/attachment-row.ts";
export type { ListedArtifact } from "./stores/blob/artifact.ts";
export { artifacts } from "./stores/blob/artifacts.ts";
export type { Artifacts } from "./stores/blob/artifacts.ts";
export { blobs } from "./stores/blob/blobs.ts";
export type { Blobs } from "./stores/blob/blobs.ts";
export type { BlobOptions, BlobPutOptions } from "./stores/blob/context.ts";
export type { BlobKeep, BlobKeepsOptions } from "./stores/blob/keep.ts";
export type { PutBlob } from "./stores/blob/put.ts";
export type { LoadedBlob } from "./stores/blob/read.ts";
export type { BlobRoot, BlobSizes } from "./stores/blob/root-row.ts";
export type {
  CheckedTable,
  MaintenanceCheckReport,
} from "./stores/maintenance/check.ts";
export type {
  CollectOptions,
  CollectReport,
} from "./stores/maintenance/collect.ts";
export type { MaintenanceOptions } from "./stores/maintenance/context.ts";
export { maintenance } from "./stores/maintenance/maintenance.ts";
export type { Maintenance } from "./stores/maintenance/maintenance.ts";
export type { SizeReport } from "./stores/maintenance/sizes.ts";
