/** The bytes of one file, growing as a file does: what lies between the old end and a later write is zero. */
export class Content {
  #room: Buffer;
  #size: number;

  constructor(bytes: Buffer) {
    this.#room = Buffer.from(bytes);
    this.#size = bytes.length;
  }

  write(offset: number, bytes: Buffer): void {
    this.grow(offset + bytes.length);
    bytes.copy(this.#room, offset);
  }

  grow(size: number): void {
    if (size <= this.#size) return;
    if (size > this.#room.length) {
      const larger = Buffer.alloc(Math.max(size, this.#room.length * 2));
      this.#room.copy(larger, 0, 0, this.#size);
      this.#room = larger;
    }
    this.#size = size;
  }

  truncate(size: number): void {
    if (size > this.#size) return this.grow(size);
    // Bytes behind the end must be zero for the next growth.
    this.#room.fill(0, size, this.#size);
    this.#size = size;
  }

  /** A copy of what lies there, which may be less than asked for at the end. */
  read(offset: number, length: number): Buffer {
    return Buffer.from(this.#room.subarray(offset, Math.min(offset + length, this.#size)));
  }

  bytes(): Buffer {
    return this.read(0, this.#size);
  }

  copy(): Content {
    return new Content(this.#room.subarray(0, this.#size));
  }
}
