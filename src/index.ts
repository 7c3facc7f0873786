export { HoldfastError, isHoldfastError } from "./model/errors.ts";
export type { ErrorCode, ErrorDetails } from "./model/errors.ts";
