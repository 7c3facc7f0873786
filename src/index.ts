export { HoldfastError, isHoldfastError } from "./model/errors.ts";
export type { ErrorCode } from "./model/errors.ts";
