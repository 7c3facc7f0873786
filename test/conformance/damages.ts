/** A table, what is done to it by a database shell, and what a check finds then: table, key and reason. */
export type Damage = readonly [
  table: string,
  statement: string,
  findings: readonly string[],
];

/** Each is done alone to a database with rows of every kind, and undone. Numbers in keys are written as #, hashes as hash. */
export const damages: readonly Damage[] = [
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET input_hash = 'other' WHERE id = 'order'",
    ["holdfast_execution order: Its input_hash is not that of its creation."],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET state = 'odd' WHERE id = 'order'",
    [
      'holdfast_execution order: The columns of execution order contradict its state "odd", which no operation of Holdfast writes',
    ],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET version = version + 1 WHERE id = 'order'",
    ["holdfast_execution order: Its log does not end at its version."],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET responses = responses - 1 WHERE id = 'order'",
    [
      "holdfast_execution order: Its responses do not end at their number.",
      "holdfast_execution_response order##: It comes after the last response of its execution.",
    ],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET function = 'shop/other' WHERE id = 'order'",
    ["holdfast_execution order: Its function is not that of its creation."],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET progress = '{' WHERE id = 'order'",
    ["holdfast_execution order: A stored value cannot be read: it is not JSON"],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET parent = NULL WHERE id LIKE 'order.%'",
    ["holdfast_execution order.n:set_#: Its parent is not the one of its id."],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET result_kind = 'failed' WHERE id = 'deploy'",
    ["holdfast_execution deploy: It is finished, and its log does not end so."],
  ],
  [
    "holdfast_execution",
    "UPDATE holdfast_execution SET process = 0 WHERE id = 'deploy'",
    [
      "holdfast_execution deploy: The process that it runs for does not know of it.",
    ],
  ],
  [
    "holdfast_execution",
    "DELETE FROM holdfast_execution WHERE id = 'order'",
    [
      "holdfast_execution order.n:set_#: Its parent is not the one of its id.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_event ###: Its execution is missing.",
      "holdfast_execution_response ###: Its execution is missing.",
      "holdfast_execution_response ###: Its execution is missing.",
      "holdfast_execution_response ###: Its execution is missing.",
      "holdfast_execution_delay Delay_order.n:set_#: Its execution is missing.",
      "holdfast_execution_tag ##blue: Its execution is missing.",
      "holdfast_execution_log ###: Its execution is missing.",
      "holdfast_execution_backtrace ###: Its execution is missing.",
    ],
  ],
  [
    "holdfast_execution_event",
    "UPDATE holdfast_execution_event SET payload = '{' WHERE kind = 'created' AND execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    [
      "holdfast_execution_event order##: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_execution_event",
    "UPDATE holdfast_execution_event SET payload = '{\"cents\":501}' WHERE kind = 'created' AND execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    ["holdfast_execution_event order##: Its input has another hash."],
  ],
  [
    "holdfast_execution_event",
    "UPDATE holdfast_execution_event SET payload = NULL WHERE kind = 'stepFinished' AND execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    ["holdfast_execution_event order##: It has lost its value."],
  ],
  [
    "holdfast_execution_event",
    'UPDATE holdfast_execution_event SET payload = \'{"kind":"completed","value":"unpaid"}\' WHERE kind = \'finished\' AND execution = (SELECT key FROM holdfast_execution WHERE id LIKE \'order.%\')',
    [
      "holdfast_execution_event order.n:set_###: Its result has another hash.",
      "holdfast_execution_response order##: Its value has another hash.",
    ],
  ],
  [
    "holdfast_execution_event",
    "UPDATE holdfast_execution_event SET body = '{' WHERE kind = 'patched'",
    [
      'holdfast_execution_event order##: The body of a "patched" event (version #) is no JSON object, which no operation of Holdfast writes',
    ],
  ],
  [
    "holdfast_execution_event",
    "UPDATE holdfast_execution_event SET body = '{}' WHERE kind = 'patched'",
    ["holdfast_execution_event order##: Its patch is damaged."],
  ],
  [
    "holdfast_execution_event",
    "UPDATE holdfast_execution_event SET kind = 'odd' WHERE kind = 'patched'",
    ["holdfast_execution_event order##: It is of a kind that there is not."],
  ],
  [
    "holdfast_execution_event",
    "UPDATE holdfast_execution_event SET body = replace(body, '\"inputHash\":\"', '\"inputHash\":\"0') WHERE kind = 'childRequested' AND execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    [
      "holdfast_execution_event order##: The child that it requested was created with another input.",
    ],
  ],
  [
    "holdfast_execution_event",
    "DELETE FROM holdfast_execution_event WHERE kind = 'joinSetCreated' AND execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    ["holdfast_execution_event order##: The event before it is missing."],
  ],
  [
    "holdfast_execution_event",
    "DELETE FROM holdfast_execution_event WHERE kind = 'finished' AND execution = (SELECT key FROM holdfast_execution WHERE id LIKE 'order.%')",
    [
      "holdfast_execution order.n:set_#: Its log does not end at its version.",
      "holdfast_execution_response order##: The event of the child that it answers with is missing.",
    ],
  ],
  [
    "holdfast_execution_event",
    "DELETE FROM holdfast_execution_event WHERE kind = 'finished' AND execution = (SELECT key FROM holdfast_execution WHERE id = 'deploy')",
    [
      "holdfast_execution deploy: Its log does not end at its version.",
      "holdfast_process_event deploy:#: The result in the log of its execution is missing, or another.",
    ],
  ],
  [
    "holdfast_execution_response",
    "UPDATE holdfast_execution_response SET payload = '{\"by\":\"eve\"}' WHERE kind = 'signal'",
    ["holdfast_execution_response order##: Its value has another hash."],
  ],
  [
    "holdfast_execution_response",
    "UPDATE holdfast_execution_response SET payload = '{' WHERE kind = 'signal'",
    [
      "holdfast_execution_response order##: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_execution_response",
    "UPDATE holdfast_execution_response SET value_hash = 'other' WHERE kind = 'child'",
    ["holdfast_execution_response order##: Its value has another hash."],
  ],
  [
    "holdfast_execution_response",
    "UPDATE holdfast_execution_response SET outcome = 'odd' WHERE kind = 'delay'",
    ["holdfast_execution_response order##: Its outcome is none that there is."],
  ],
  [
    "holdfast_execution_response",
    "UPDATE holdfast_execution_response SET outcome = 'failed' WHERE kind = 'child'",
    [
      "holdfast_execution_response order##: Its result is none, or of another kind.",
    ],
  ],
  [
    "holdfast_execution_response",
    "UPDATE holdfast_execution_response SET kind = 'odd' WHERE kind = 'delay'",
    ["holdfast_execution_response order##: It is of a kind that there is not."],
  ],
  [
    "holdfast_execution_response",
    "DELETE FROM holdfast_execution_response WHERE seq = 1",
    ["holdfast_execution_response order##: The response before it is missing."],
  ],
  [
    "holdfast_execution_delay",
    "UPDATE holdfast_execution_delay SET inbox = 'odd' WHERE execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    [
      "holdfast_execution_delay Delay_order.n:set_#: It belongs to another execution or set than its id says.",
    ],
  ],
  [
    "holdfast_execution_delay",
    "UPDATE holdfast_execution_delay SET execution = 0 WHERE execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    ["holdfast_execution_delay Delay_order.n:set_#: Its execution is missing."],
  ],
  [
    "holdfast_execution_tag",
    "UPDATE holdfast_execution_tag SET execution = 0 WHERE execution = (SELECT key FROM holdfast_execution WHERE id = 'order')",
    ["holdfast_execution_tag ##blue: Its execution is missing."],
  ],
  [
    "holdfast_execution_log",
    "UPDATE holdfast_execution_log SET payload = '{'",
    [
      "holdfast_execution_log order##: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_execution_log",
    "UPDATE holdfast_execution_log SET level = 'odd'",
    ["holdfast_execution_log order##: Its level is none that there is."],
  ],
  [
    "holdfast_execution_log",
    "UPDATE holdfast_execution_log SET execution = 0",
    ["holdfast_execution_log ###: Its execution is missing."],
  ],
  [
    "holdfast_execution_stack",
    "UPDATE holdfast_execution_stack SET stack = 'at b.ts:1'",
    ["holdfast_execution_stack hash: Its text has another hash."],
  ],
  [
    "holdfast_execution_stack",
    "DELETE FROM holdfast_execution_stack",
    ["holdfast_execution_backtrace order##: Its text is missing."],
  ],
  [
    "holdfast_execution_backtrace",
    "UPDATE holdfast_execution_backtrace SET execution = 0",
    ["holdfast_execution_backtrace ###: Its execution is missing."],
  ],
  [
    "holdfast_session",
    "UPDATE holdfast_session SET config = '{' WHERE id = 'chat'",
    ["holdfast_session #: A stored value cannot be read: it is not JSON"],
  ],
  [
    "holdfast_session",
    "UPDATE holdfast_session SET first_user_message = '{' WHERE id = 'chat'",
    ["holdfast_session #: A stored value cannot be read: it is not JSON"],
  ],
  [
    "holdfast_session",
    "UPDATE holdfast_session SET leaf = 0 WHERE id = 'chat'",
    ["holdfast_session #: The node at which it goes on is missing."],
  ],
  [
    "holdfast_session",
    "UPDATE holdfast_session SET fork_node = 0 WHERE id = 'fork'",
    ["holdfast_session #: The node at which it was forked is missing."],
  ],
  [
    "holdfast_session",
    "UPDATE holdfast_session SET forked_from = 0 WHERE id = 'fork'",
    ["holdfast_session #: The session from which it was forked is missing."],
  ],
  [
    "holdfast_session",
    "UPDATE holdfast_session SET current_frame = 'odd' WHERE id = 'chat'",
    ["holdfast_session #: Its current frame is missing."],
  ],
  [
    "holdfast_session",
    "UPDATE holdfast_session SET id = '' WHERE id = 'fork'",
    [
      'holdfast_session #: Expected a session id: a text of # to # characters, got "": it is empty or too long.',
    ],
  ],
  [
    "holdfast_session_node",
    "UPDATE holdfast_session_node SET payload = '{' WHERE id = 'n3'",
    ["holdfast_session_node #: A stored value cannot be read: it is not JSON"],
  ],
  [
    "holdfast_session_node",
    "UPDATE holdfast_session_node SET payload = NULL WHERE id = 'n3'",
    ["holdfast_session_node #: It has no payload."],
  ],
  [
    "holdfast_session_node",
    "UPDATE holdfast_session_node SET depth = 7 WHERE id = 'n3'",
    ["holdfast_session_node #: Its depth is not that after its parent's."],
  ],
  [
    "holdfast_session_node",
    "UPDATE holdfast_session_node SET turn = 'odd' WHERE id = 'n3'",
    ["holdfast_session_node #: The turn that appended it has no receipt."],
  ],
  [
    "holdfast_session_node",
    "UPDATE holdfast_session_node SET session = 0 WHERE id = 'n3'",
    ["holdfast_session_node #: Its session is missing."],
  ],
  [
    "holdfast_session_node",
    "DELETE FROM holdfast_session_node WHERE id = 'n1'",
    [
      "holdfast_session_node #: Its parent is missing, and nobody has removed it.",
    ],
  ],
  [
    "holdfast_session_node",
    "DELETE FROM holdfast_session_node WHERE id = 'n3'",
    [
      "holdfast_session #: The node at which it goes on is missing.",
      "holdfast_session #: The node at which it goes on is missing.",
    ],
  ],
  [
    "holdfast_session_tombstone",
    "UPDATE holdfast_session_tombstone SET session = 0",
    ["holdfast_session_tombstone #/#: Its session is missing."],
  ],
  [
    "holdfast_session_frame",
    'UPDATE holdfast_session_frame SET payload = \'{"reason":"end","data":{"a":1}}\' WHERE session = (SELECT key FROM holdfast_session WHERE id = \'chat\')',
    ["holdfast_session_frame #/f: Its content has another hash."],
  ],
  [
    "holdfast_session_frame",
    "UPDATE holdfast_session_frame SET payload = '{' WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    [
      "holdfast_session_frame #/f: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_session_frame",
    "UPDATE holdfast_session_frame SET hash = 'other' WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    ["holdfast_session_frame #/f: Its content has another hash."],
  ],
  [
    "holdfast_session_frame",
    "UPDATE holdfast_session_frame SET blob = 'odd' WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    ["holdfast_session_frame #/f: The blob that it refers to is missing."],
  ],
  [
    "holdfast_session_component",
    "UPDATE holdfast_session_component SET hash = 'other' WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    ["holdfast_session_component #/plan: Its value has another hash."],
  ],
  [
    "holdfast_session_component",
    "UPDATE holdfast_session_component SET blob = 'odd' WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    [
      "holdfast_session_component #/plan: The blob that it refers to is missing.",
    ],
  ],
  [
    "holdfast_session_component",
    "UPDATE holdfast_session_component SET blob = (SELECT blob FROM holdfast_session_frame LIMIT 1) WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    ["holdfast_session_component #/plan: Its value has another hash."],
  ],
  [
    "holdfast_session_usage",
    "UPDATE holdfast_session_usage SET turn = 'odd'",
    ["holdfast_session_usage #: The turn that wrote it has no receipt."],
  ],
  [
    "holdfast_session_turn",
    "UPDATE holdfast_session_turn SET hash = 'other'",
    ["holdfast_session_turn #/t#: Its parts have another hash."],
  ],
  [
    "holdfast_session_turn",
    "UPDATE holdfast_session_turn SET parts = '{}'",
    ["holdfast_session_turn #/t#: Its parts have another hash."],
  ],
  [
    "holdfast_session_turn",
    "UPDATE holdfast_session_turn SET result = '{'",
    ["holdfast_session_turn #/t#: It makes no sense."],
  ],
  [
    "holdfast_session_turn",
    "DELETE FROM holdfast_session_turn",
    [
      "holdfast_session_node #: The turn that appended it has no receipt.",
      "holdfast_session_node #: The turn that appended it has no receipt.",
      "holdfast_session_node #: The turn that appended it has no receipt.",
      "holdfast_session_usage #: The turn that wrote it has no receipt.",
    ],
  ],
  [
    "holdfast_session_lease",
    "UPDATE holdfast_session_lease SET expires_at = NULL",
    ["holdfast_session_lease #: It has a token but lacks other parts."],
  ],
  [
    "holdfast_session_lease",
    "UPDATE holdfast_session_lease SET session = 0",
    [
      "holdfast_session_lease #: Its session is missing.",
      "holdfast_queue_batch batch_hash: It is claimed under a fence that was never given out.",
    ],
  ],
  [
    "holdfast_queue_batch",
    "UPDATE holdfast_queue_batch SET slot = 'odd' WHERE source_key = 'third'",
    [
      "holdfast_queue_batch batch_hash: Its class, delivery or slot is none that there is.",
    ],
  ],
  [
    "holdfast_queue_batch",
    "UPDATE holdfast_queue_batch SET claim_size = NULL WHERE source_key = 'third'",
    [
      "holdfast_queue_batch batch_hash: It is claimed, and lacks parts of the claim.",
    ],
  ],
  [
    "holdfast_queue_batch",
    "UPDATE holdfast_queue_batch SET claim_fence = 99 WHERE source_key = 'third'",
    [
      "holdfast_queue_batch batch_hash: It is claimed under a fence that was never given out.",
    ],
  ],
  [
    "holdfast_queue_batch",
    "UPDATE holdfast_queue_batch SET session = 0 WHERE source_key = 'third'",
    [
      "holdfast_queue_batch batch_hash: It is claimed under a fence that was never given out.",
    ],
  ],
  [
    "holdfast_queue_batch",
    "DELETE FROM holdfast_queue_batch WHERE source_key = 'third'",
    ["holdfast_queue_item #.#: Its batch is missing."],
  ],
  [
    "holdfast_queue_item",
    "UPDATE holdfast_queue_item SET payload = '{' WHERE kind = 'input'",
    [
      "holdfast_queue_item batch_hash.#: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_queue_item",
    "DELETE FROM holdfast_queue_item WHERE kind = 'input'",
    ["holdfast_queue_batch batch_hash: It has no items."],
  ],
  [
    "holdfast_queue_item",
    "UPDATE holdfast_queue_item SET ordinal = 1 WHERE kind = 'input'",
    ["holdfast_queue_batch batch_hash: It lacks items."],
  ],
  [
    "holdfast_queue_consumed",
    "UPDATE holdfast_queue_consumed SET session = 0",
    ["holdfast_queue_consumed #/first: Its session is missing."],
  ],
  [
    "holdfast_queue_wake_mark",
    "UPDATE holdfast_queue_wake_mark SET session = 0",
    ["holdfast_queue_wake_mark #/elsewhere: Its session is missing."],
  ],
  [
    "holdfast_queue_completed",
    "UPDATE holdfast_queue_completed SET batches = '{'",
    ["holdfast_queue_completed #/#: It makes no sense."],
  ],
  [
    "holdfast_queue_completed",
    "UPDATE holdfast_queue_completed SET batches = (SELECT '[\"' || id || '\"]' FROM holdfast_queue_batch WHERE source_key = 'third')",
    [
      "holdfast_queue_completed #/#: A batch that it completed is still in the queue.",
    ],
  ],
  [
    "holdfast_blob",
    "UPDATE holdfast_blob SET size = size + 1 WHERE hash = (SELECT blob FROM holdfast_artifact)",
    [
      'holdfast_blob hash: Row "hash" of holdfast_blob is damaged: # bytes are there instead of #',
    ],
  ],
  [
    "holdfast_blob",
    "UPDATE holdfast_blob SET encoding = 'odd' WHERE hash = (SELECT blob FROM holdfast_artifact)",
    [
      'holdfast_blob hash: Row "hash" of holdfast_blob is damaged: its encoding is unknown',
    ],
  ],
  [
    "holdfast_blob",
    "UPDATE holdfast_blob SET content = (SELECT content FROM holdfast_attachment_bytes), size = 7 WHERE hash = (SELECT blob FROM holdfast_artifact)",
    [
      'holdfast_blob hash: Row "hash" of holdfast_blob is damaged: its content has another hash',
    ],
  ],
  [
    "holdfast_blob",
    "DELETE FROM holdfast_blob WHERE hash = (SELECT blob FROM holdfast_artifact)",
    ["holdfast_artifact space/name: The blob that it refers to is missing."],
  ],
  [
    "holdfast_blob",
    "DELETE FROM holdfast_blob WHERE hash IN (SELECT blob FROM holdfast_session_component UNION SELECT blob FROM holdfast_session_frame UNION SELECT hash FROM holdfast_blob_keep)",
    [
      "holdfast_session_frame #/f: The blob that it refers to is missing.",
      "holdfast_session_frame #/f: The blob that it refers to is missing.",
      "holdfast_session_component #/plan: The blob that it refers to is missing.",
      "holdfast_session_component #/plan: The blob that it refers to is missing.",
      "holdfast_blob_put hash: The blob that it refers to is missing.",
      "holdfast_blob_keep hash/invoice/#: The blob that it refers to is missing.",
    ],
  ],
  [
    "holdfast_blob_keep",
    "UPDATE holdfast_blob_keep SET hash = 'odd'",
    ["holdfast_blob_keep odd/invoice/#: It refers to what is no hash."],
  ],
  [
    "holdfast_blob_put",
    "UPDATE holdfast_blob_put SET hash = 'odd'",
    ["holdfast_blob_put odd: It refers to what is no hash."],
  ],
  [
    "holdfast_artifact",
    "UPDATE holdfast_artifact SET blob = 'odd'",
    ["holdfast_artifact space/name: It refers to what is no hash."],
  ],
  [
    "holdfast_attachment",
    "UPDATE holdfast_attachment SET id = 'odd' WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    ["holdfast_attachment #/odd: Its id is no hash."],
  ],
  [
    "holdfast_attachment",
    "UPDATE holdfast_attachment SET size = 8 WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    ["holdfast_attachment #/hash: Its bytes are of another size."],
  ],
  [
    "holdfast_attachment",
    "UPDATE holdfast_attachment SET session = 0 WHERE session = (SELECT key FROM holdfast_session WHERE id = 'chat')",
    ["holdfast_attachment #/hash: Its session is missing."],
  ],
  [
    "holdfast_attachment_copy",
    "UPDATE holdfast_attachment_copy SET state = 'odd'",
    [
      "holdfast_attachment #/hash: No copy of its bytes is stored.",
      "holdfast_attachment #/hash: No copy of its bytes is stored.",
      "holdfast_attachment_copy hash.hash: Its state is none that there is.",
    ],
  ],
  [
    "holdfast_attachment_copy",
    "DELETE FROM holdfast_attachment_copy",
    [
      "holdfast_attachment #/hash: No copy of its bytes is stored.",
      "holdfast_attachment #/hash: No copy of its bytes is stored.",
      "holdfast_attachment_bytes hash.hash: The copy that they are the bytes of is missing.",
    ],
  ],
  [
    "holdfast_attachment_bytes",
    "UPDATE holdfast_attachment_bytes SET content = (SELECT content FROM holdfast_blob WHERE hash = (SELECT blob FROM holdfast_artifact))",
    ["holdfast_attachment_bytes hash.hash: They have another hash."],
  ],
  [
    "holdfast_attachment_bytes",
    "DELETE FROM holdfast_attachment_bytes",
    ["holdfast_attachment_copy hash.hash: Its bytes are missing."],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET hash = 'other' WHERE id = 'build'",
    ["holdfast_process build: Its parts have another hash."],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET parts = '{' WHERE id = 'build'",
    [
      "holdfast_process build: A row of holdfast_process (build) has parts that are no JSON, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET input = '{\"branch\":\"next\"}' WHERE id = 'build'",
    ["holdfast_process build: Its input has another hash."],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET input = '{' WHERE id = 'build'",
    ["holdfast_process build: A stored value cannot be read: it is not JSON"],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET label = 'another' WHERE id = 'build'",
    ["holdfast_process build: Its label has another hash."],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET kind = 'another' WHERE id = 'old'",
    ["holdfast_process old: Its kind has another hash."],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET event_types = '{' WHERE id = 'build'",
    [
      "holdfast_process build: A row of holdfast_process (build) has a event_types that is no JSON, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET end_wakes = '{' WHERE id = 'deploy'",
    ["holdfast_process deploy: It makes no sense."],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET status = 'odd' WHERE id = 'build'",
    [
      "holdfast_process build: A row of holdfast_process (build) has a status that does not exist, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET sequence = sequence + 1 WHERE id = 'build'",
    ["holdfast_process build: Its log does not end at its sequence."],
  ],
  [
    "holdfast_process",
    "UPDATE holdfast_process SET external_sequence = 99 WHERE id = 'build'",
    [
      "holdfast_process build: The event that named its outside work is missing.",
    ],
  ],
  [
    "holdfast_process",
    "DELETE FROM holdfast_process WHERE id = 'build'",
    [
      "holdfast_queue_batch wake_#_#: The event of the process that woke with it is missing, or says otherwise.",
      "holdfast_process_event #:#: Its process is missing.",
      "holdfast_process_event #:#: Its process is missing.",
      "holdfast_process_grant #/chat/#/: Its process is missing.",
      "holdfast_process_lease #: Its process is missing.",
    ],
  ],
  [
    "holdfast_process",
    "DELETE FROM holdfast_process WHERE id LIKE 'trigger%'",
    [
      "holdfast_process_event #:#: Its process is missing.",
      "holdfast_process_event #:#: Its process is missing.",
      "holdfast_process_grant #/chat/#/: Its process is missing.",
      "holdfast_trigger_delivery #/push: The process that it started is missing.",
      "holdfast_trigger_delivery #/hourly: The process that it started is missing.",
    ],
  ],
  [
    "holdfast_process_event",
    "UPDATE holdfast_process_event SET payload = '{\"percent\":6}' WHERE type = 'progress'",
    ["holdfast_process_event build:#: Its payload has another hash."],
  ],
  [
    "holdfast_process_event",
    "UPDATE holdfast_process_event SET payload = '{' WHERE type = 'progress'",
    [
      "holdfast_process_event build:#: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_process_event",
    "UPDATE holdfast_process_event SET hash = 'other' WHERE type = 'progress'",
    ["holdfast_process_event build:#: Its payload has another hash."],
  ],
  [
    "holdfast_process_event",
    "UPDATE holdfast_process_event SET body = '{' WHERE type = 'progress'",
    [
      "holdfast_process_event build:#: A row of holdfast_process_event (build:#) has a body that makes no sense, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_process_event",
    "UPDATE holdfast_process_event SET wake = NULL WHERE type = 'progress'",
    [
      "holdfast_queue_batch wake_#_#: The event of the process that woke with it is missing, or says otherwise.",
    ],
  ],
  [
    "holdfast_process_event",
    "UPDATE holdfast_process_event SET execution_version = 0 WHERE execution_version IS NOT NULL",
    [
      "holdfast_process_event deploy:#: The result in the log of its execution is missing, or another.",
    ],
  ],
  [
    "holdfast_process_event",
    "DELETE FROM holdfast_process_event WHERE type = 'progress'",
    [
      "holdfast_queue_batch wake_#_#: The event of the process that woke with it is missing, or says otherwise.",
      "holdfast_process build: Its log does not end at its sequence.",
    ],
  ],
  [
    "holdfast_process_grant",
    "UPDATE holdfast_process_grant SET process = 0 WHERE label = 'mine'",
    ["holdfast_process_grant #/chat/#/: Its process is missing."],
  ],
  [
    "holdfast_process_grant",
    "UPDATE holdfast_process_grant SET session = 'odd' WHERE label = 'mine'",
    ["holdfast_process_grant #/odd/#/: The session that has it is missing."],
  ],
  [
    "holdfast_process_lease",
    "UPDATE holdfast_process_lease SET expires_at = NULL",
    ["holdfast_process_lease #: It has a token but lacks other parts."],
  ],
  [
    "holdfast_process_lease",
    "UPDATE holdfast_process_lease SET process = 0",
    ["holdfast_process_lease #: Its process is missing."],
  ],
  [
    "holdfast_process_session_end",
    "UPDATE holdfast_process_session_end SET report = '{}'",
    ["holdfast_process_session_end #: It is no report."],
  ],
  [
    "holdfast_process_session_end",
    "UPDATE holdfast_process_session_end SET session = 0",
    ["holdfast_process_session_end #: Its session is missing."],
  ],
  [
    "holdfast_effect",
    'UPDATE holdfast_effect SET envelope = \'{"input":{"prompt":"c"},"kind":"llm"}\' WHERE replay_key = \'ask\'',
    ["holdfast_effect #: Its envelope has another hash."],
  ],
  [
    "holdfast_effect",
    "UPDATE holdfast_effect SET envelope = '{' WHERE replay_key = 'ask'",
    ["holdfast_effect #: A stored value cannot be read: it is not JSON"],
  ],
  [
    "holdfast_effect",
    "UPDATE holdfast_effect SET hash = 'other' WHERE replay_key = 'ask'",
    ["holdfast_effect #: Its envelope has another hash."],
  ],
  [
    "holdfast_effect",
    "UPDATE holdfast_effect SET kind = 'other' WHERE replay_key = 'ask'",
    ["holdfast_effect #: Its envelope is of another kind."],
  ],
  [
    "holdfast_effect",
    "UPDATE holdfast_effect SET outcome = '{' WHERE replay_key = 'ask'",
    ["holdfast_effect #: A stored value cannot be read: it is not JSON"],
  ],
  [
    "holdfast_effect",
    "UPDATE holdfast_effect SET outcome = '1' WHERE replay_key = 'fail'",
    ["holdfast_effect #: It failed with what is no error."],
  ],
  [
    "holdfast_effect",
    "UPDATE holdfast_effect SET status = 'odd' WHERE replay_key = 'ask'",
    [
      "holdfast_effect #: A row of holdfast_effect (#) has a status that there is not, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_effect",
    "UPDATE holdfast_effect SET session = 999999 WHERE replay_key = 'ask'",
    ["holdfast_effect #: Its session is missing."],
  ],
  [
    "holdfast_await_secret",
    "UPDATE holdfast_await_secret SET secret = '\"short\"'",
    ["holdfast_await_secret #: It holds no secret."],
  ],
  [
    "holdfast_await_event",
    "UPDATE holdfast_await_event SET payload = '{\"agreed\":false}' WHERE name = 'yes'",
    ["holdfast_await_event await_hash: Its value has another hash."],
  ],
  [
    "holdfast_await_event",
    "UPDATE holdfast_await_event SET payload = '{' WHERE name = 'yes'",
    [
      "holdfast_await_event await_hash: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_await_event",
    "UPDATE holdfast_await_event SET hash = 'other' WHERE name = 'no'",
    ["holdfast_await_event await_hash: Its error has another hash."],
  ],
  [
    "holdfast_await_event",
    "UPDATE holdfast_await_event SET payload = '1' WHERE name = 'no'",
    ["holdfast_await_event await_hash: It failed with what is no error."],
  ],
  [
    "holdfast_await_event",
    "UPDATE holdfast_await_event SET state = 'odd' WHERE name = 'yes'",
    [
      "holdfast_await_event await_hash: A row of holdfast_await_event (await_hash) has a state that its other columns contradict, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_await_event",
    "UPDATE holdfast_await_event SET scope = 'odd' WHERE name = 'open'",
    [
      "holdfast_await_event await_hash: Its id is not that of its scope and key.",
    ],
  ],
  [
    "holdfast_effect_group",
    "UPDATE holdfast_effect_group SET kind = 'odd'",
    [
      "holdfast_effect_group #: A row of holdfast_effect_group (#) is of a kind that there is not, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_effect_group",
    "DELETE FROM holdfast_effect_group",
    [
      "holdfast_effect_group_member #.#: Its group is missing.",
      "holdfast_effect_group_member #.#: Its group is missing.",
    ],
  ],
  [
    "holdfast_effect_group_member",
    "DELETE FROM holdfast_effect_group_member WHERE ordinal = 0",
    [
      "holdfast_effect_group #: A row of holdfast_effect_group (#) lacks members, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_effect_group_member",
    "UPDATE holdfast_effect_group_member SET succeeded = NULL WHERE ordinal = 0",
    [
      "holdfast_effect_group #: A row of holdfast_effect_group_member (#.#) has a place but lacks other parts, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_schedule",
    "UPDATE holdfast_schedule SET cadence = '{' WHERE kind = 'mine'",
    [
      'holdfast_schedule #: Schedule "daily" of kind "mine" has terms that no operation of Holdfast writes',
    ],
  ],
  [
    "holdfast_schedule",
    "UPDATE holdfast_schedule SET catch_up = 'odd' WHERE kind = 'mine'",
    [
      'holdfast_schedule #: Schedule "daily" of kind "mine" has terms that no operation of Holdfast writes',
    ],
  ],
  [
    "holdfast_trigger_subscription",
    "UPDATE holdfast_trigger_subscription SET content = '{' WHERE name = 'push'",
    [
      "holdfast_trigger_subscription #: A row of holdfast_trigger_subscription (#) holds what the codec cannot read (if its keys are right), which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_trigger_subscription",
    'UPDATE holdfast_trigger_subscription SET content = replace(content, \'"kind":"tool"\', \'"kind":"toy"\') WHERE name = \'push\'',
    ["holdfast_trigger_subscription #: Its target has another hash."],
  ],
  [
    "holdfast_trigger_subscription",
    "UPDATE holdfast_trigger_subscription SET parts = '{}' WHERE name = 'push'",
    ["holdfast_trigger_subscription #: Its source has another hash."],
  ],
  [
    "holdfast_trigger_subscription",
    "UPDATE holdfast_trigger_subscription SET session = 999999 WHERE name = 'push'",
    ["holdfast_trigger_subscription #: Its session is missing."],
  ],
  [
    "holdfast_trigger_subscription",
    "DELETE FROM holdfast_trigger_subscription WHERE name = 'push'",
    [
      "holdfast_trigger_delivery #/#: Its subscription is missing.",
      "holdfast_trigger_delivery #/#: Its subscription is missing.",
    ],
  ],
  [
    "holdfast_trigger_occurrence",
    "UPDATE holdfast_trigger_occurrence SET payload = '{\"branch\":\"next\"}' WHERE id = '1'",
    ["holdfast_trigger_occurrence #: Its payload has another hash."],
  ],
  [
    "holdfast_trigger_occurrence",
    "UPDATE holdfast_trigger_occurrence SET payload = '{' WHERE id = '1'",
    [
      "holdfast_trigger_occurrence #: A stored value cannot be read: it is not JSON",
    ],
  ],
  [
    "holdfast_trigger_occurrence",
    "UPDATE holdfast_trigger_occurrence SET payload_hash = 'other' WHERE source_type = 'schedule'",
    [
      "holdfast_trigger_occurrence schedule:#/hourly@#: Its payload has another hash.",
    ],
  ],
  [
    "holdfast_trigger_occurrence",
    "DELETE FROM holdfast_trigger_occurrence WHERE id = '1'",
    ["holdfast_trigger_delivery #/push: Its occurrence is missing."],
  ],
  [
    "holdfast_trigger_delivery",
    "UPDATE holdfast_trigger_delivery SET refusal = '{' WHERE refusal IS NOT NULL",
    [
      "holdfast_trigger_delivery #/push: A row of holdfast_trigger_delivery (#) has a refusal that is no JSON, which no operation of Holdfast writes",
    ],
  ],
  [
    "holdfast_trigger_delivery",
    "UPDATE holdfast_trigger_delivery SET refusal = NULL WHERE refusal IS NOT NULL",
    [
      "holdfast_trigger_delivery #/push: It started a process and none, or neither.",
    ],
  ],
  [
    "holdfast_owner",
    "UPDATE holdfast_owner SET id = 'odd' WHERE host = 'elsewhere'",
    [
      'holdfast_owner odd: Expected an owner id such as "Own_#ARZ#NDEKTSV#RRFFQ#G#FAV", got "odd": the prefix is another one.',
    ],
  ],
  [
    "holdfast_app_migration",
    "UPDATE holdfast_app_migration SET position = 1 WHERE app = 'shop'",
    [
      "holdfast_app_migration shop/#: Its app lacks migrations before the last.",
    ],
  ],
];
