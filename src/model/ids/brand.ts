declare const brand: unique symbol;

/**
 * Text that has been checked to be a `Kind`. The brand exists for the compiler
 * alone: two ids in each other's place do not compile, and text becomes an id
 * only through a parse function.
 */
export type Branded<Kind extends string> = string & { readonly [brand]: Kind };
