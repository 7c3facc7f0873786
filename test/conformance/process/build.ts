/** A build that reports, wakes its session, and can be told things. */
export const build = {
  id: "p",
  kind: "tool",
  wakeTarget: "s",
  causedBy: "turn-1",
  eventTypes: [
    {
      name: "progress",
      schema: {
        type: "object",
        properties: {
          percent: { type: "integer", minimum: 0, maximum: 100 },
          step: { type: "string", maxLength: 5 },
        },
        required: ["percent"],
      },
    },
    {
      name: "found",
      wake: { input: { kind: "pointer", pointer: "/text" } },
    },
    {
      name: "broke",
      terminal: {
        state: "failed",
        output: { kind: "pointer", pointer: "/why" },
      },
    },
    { name: "built", terminal: { state: "completed" } },
    { name: "signal.go" },
  ],
} as const;
