//! What clients send, read.

mod oracle;

use keywright_resp::command::{
    Altered, ClientCommand, ClusterQuery, Command, CommandQuery, Granted, HELP, Hello,
    KeywrightCommand, Login, Refusal, Secret, UserCommand, table,
};
use keywright_resp::fault::Fault;
use keywright_resp::reply::Protocol;
use keywright_resp::request::{Read, Reader};
use oracle::{LIMITS, agrees, read, written};

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// What becomes of one request.
fn parsed(bytes: &[u8], check: impl FnOnce(Result<Command<'_>, Refusal<'_>>)) {
    let mut reader = Reader::new(LIMITS);
    match reader.read(bytes) {
        Ok(Read::Request(request)) => check(Command::parse(&request)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_come_one_after_another_in_any_pieces() {
    let mut bytes = written(&words("INCR orders"));
    bytes.extend(b"ping\r\n\r\n*0\r\n*-1\r\n  incr  orders \n");
    bytes.extend(written(&[b"ECHO".to_vec(), b"a\r\n$*".to_vec()]));
    let requests = read(&bytes, || usize::MAX);
    let arguments: Vec<_> = requests.whole.into_iter().map(|(words, _)| words).collect();
    let expected = [
        words("INCR orders"),
        words("ping"),
        vec![],
        vec![],
        vec![],
        words("incr orders"),
        vec![b"ECHO".to_vec(), b"a\r\n$*".to_vec()],
    ];
    assert_eq!(arguments, expected);
    assert_eq!(requests.fault, None);
    agrees(&bytes);
}

#[test]
fn quotes_in_lines_are_those_of_redis() {
    for (line, expected) in [
        (r#"echo "a b""#, Some("a b")),
        (r#"echo 'a "b'"#, Some("a \"b")),
        (r#"echo "\x41\n\"\\""#, Some("A\n\"\\")),
        (r"echo 'it\'s'", Some("it's")),
        (r#"echo """#, Some("")),
        (r#"echo a"b c""#, Some("ab c")),
        (r#"echo "a"#, None),
        (r#"echo "a"b"#, None),
        (r"echo 'a", None),
        (r#"echo "a\"#, None),
    ] {
        let requests = read(format!("{line}\r\n").as_bytes(), || 1);
        match expected {
            Some(word) => {
                let expected = vec![b"echo".to_vec(), word.as_bytes().to_vec()];
                assert_eq!(
                    requests.whole.first().map(|(words, _)| words),
                    Some(&expected)
                );
            }
            None => assert_eq!(requests.fault, Some(Fault::Quotes), "{line}"),
        }
    }
}

#[test]
fn what_keeps_to_no_protocol_is_told_and_nothing_is_read_behind_it() {
    let long = "a".repeat(2_000);
    let lengths = format!("*1\r\n$257\r\n{long}\r\n");
    let many = format!(
        "*5\r\n{}",
        format!("$250\r\n{}\r\n", "a".repeat(250)).repeat(5)
    );
    for (bytes, fault) in [
        ("*17\r\n", Fault::ArgumentCount),
        ("*x\r\n", Fault::ArgumentCount),
        ("*\r\n", Fault::ArgumentCount),
        ("*-2\r\n", Fault::ArgumentCount),
        ("*99999999999999999999\r\n", Fault::ArgumentCount),
        ("*1\r\n*1\r\n", Fault::NoBulk(b'*')),
        ("*1\r\n:1\r\n", Fault::NoBulk(b':')),
        ("*1\r\n$-1\r\n", Fault::ArgumentLength),
        (&lengths, Fault::ArgumentLength),
        ("*1\r\n$1\r\nab\r\n", Fault::NoLineEnd),
        ("*1\rx", Fault::NoLineEnd),
        ("*1\r\n$1\r\na\rx", Fault::NoLineEnd),
        (&long, Fault::TooLong),
        (&many, Fault::TooLong),
        ("a \"\n", Fault::Quotes),
    ] {
        let text = format!("{}PING\r\n{bytes}PING\r\n", "");
        let requests = read(text.as_bytes(), || 3);
        assert_eq!(requests.fault, Some(fault), "{bytes}");
        assert_eq!(requests.whole.len(), 1, "{bytes}");
        assert!(fault.to_string().starts_with("Protocol error: "));
    }
    assert!(Fault::ALL.iter().any(|fault| fault.is_of_length()));
}

#[test]
fn commands_are_read_in_any_case() {
    let login = |user: &'static [u8]| Login {
        user,
        password: b"secret",
    };
    let hello = |protocol, login, name| {
        Command::Hello(Hello {
            protocol,
            login,
            name,
        })
    };
    let of_user = |command| Command::Keywright(KeywrightCommand::User(command));
    let granted = Granted {
        name: b"app",
        rights: b"use,create",
        pattern: b"shop.*",
    };
    for (line, expected) in [
        ("incr orders", Command::Incr(b"orders")),
        ("IncrBy orders 16", Command::IncrBy(b"orders", 16)),
        ("incrby orders -1", Command::IncrBy(b"orders", -1)),
        ("get orders", Command::Get(b"orders")),
        ("mget orders bills", Command::Mget),
        ("ping", Command::Ping(None)),
        ("ping x", Command::Ping(Some(b"x"))),
        ("echo x", Command::Echo(b"x")),
        ("hello", hello(None, None, None)),
        ("hello 3", hello(Some(Protocol::Resp3), None, None)),
        (
            "hello 2 auth app secret setname me",
            hello(Some(Protocol::Resp2), Some(login(b"app")), Some(b"me")),
        ),
        ("auth secret", Command::Auth(login(b"default"))),
        ("auth app secret", Command::Auth(login(b"app"))),
        ("select 0", Command::Select),
        ("quit", Command::Quit),
        ("reset", Command::Reset),
        ("time", Command::Time),
        ("info server", Command::Info),
        ("command", Command::Command(CommandQuery::All)),
        ("command docs get", Command::Command(CommandQuery::Docs)),
        ("command count", Command::Command(CommandQuery::Count)),
        ("command info get", Command::Command(CommandQuery::Info)),
        (
            "client setname me",
            Command::Client(ClientCommand::SetName(b"me")),
        ),
        (
            "client setinfo lib-name x",
            Command::Client(ClientCommand::SetInfo),
        ),
        ("client getname", Command::Client(ClientCommand::GetName)),
        ("client id", Command::Client(ClientCommand::Id)),
        ("client info", Command::Client(ClientCommand::Info)),
        ("acl whoami", Command::AclWhoami),
        ("config get save", Command::ConfigGet),
        ("readonly", Command::Readonly),
        ("cluster slots", Command::Cluster(ClusterQuery::Slots)),
        (
            "cluster keyslot a",
            Command::Cluster(ClusterQuery::KeySlot(b"a")),
        ),
        (
            "keywright next orders",
            Command::Keywright(KeywrightCommand::Next {
                name: b"orders",
                count: None,
            }),
        ),
        (
            "keywright next orders count 5",
            Command::Keywright(KeywrightCommand::Next {
                name: b"orders",
                count: Some(5),
            }),
        ),
        (
            "keywright decode 1",
            Command::Keywright(KeywrightCommand::Decode(b"1")),
        ),
        ("keywright list", Command::Keywright(KeywrightCommand::List)),
        (
            "keywright stats",
            Command::Keywright(KeywrightCommand::Stats),
        ),
        (
            "keywright create orders",
            Command::Keywright(KeywrightCommand::Create {
                name: b"orders",
                order: None,
            }),
        ),
        (
            "keywright create orders Order monotonic",
            Command::Keywright(KeywrightCommand::Create {
                name: b"orders",
                order: Some(b"monotonic"),
            }),
        ),
        (
            "keywright demote",
            Command::Keywright(KeywrightCommand::Demote { group: None }),
        ),
        (
            "keywright demote Group 2",
            Command::Keywright(KeywrightCommand::Demote { group: Some(2) }),
        ),
        (
            "keywright advance orders 7",
            Command::Keywright(KeywrightCommand::Advance {
                name: b"orders",
                above: 7,
                use_up: false,
            }),
        ),
        (
            "keywright advance orders 7 UseUp",
            Command::Keywright(KeywrightCommand::Advance {
                name: b"orders",
                above: 7,
                use_up: true,
            }),
        ),
        (
            "keywright alter orders step 9 Step_Max 10 refill_percent -1 description x",
            Command::Keywright(KeywrightCommand::Alter {
                name: b"orders",
                altered: Altered {
                    step: Some(9),
                    step_max: Some(10),
                    refill_percent: Some(-1),
                    description: Some(b"x"),
                    ..Altered::default()
                },
            }),
        ),
        ("keywright help", Command::Keywright(KeywrightCommand::Help)),
        (
            "keywright drop orders",
            Command::Keywright(KeywrightCommand::Drop(b"orders")),
        ),
        (
            "keywright user add app secret",
            of_user(UserCommand::Add {
                name: b"app",
                password: Secret(b"secret"),
            }),
        ),
        (
            "KEYWRIGHT USER SetPass app secret",
            of_user(UserCommand::SetPassword {
                name: b"app",
                password: Secret(b"secret"),
            }),
        ),
        (
            "keywright user grant app use,create shop.*",
            of_user(UserCommand::Grant(granted)),
        ),
        (
            "keywright user revoke app use,create shop.*",
            of_user(UserCommand::Revoke(granted)),
        ),
        (
            "keywright user remove app",
            of_user(UserCommand::Remove(b"app")),
        ),
        ("keywright user list", of_user(UserCommand::List)),
        ("keywright user whoami", of_user(UserCommand::Whoami)),
    ] {
        parsed(&written(&words(line)), |command| {
            assert_eq!(command, Ok(expected), "{line}")
        });
    }
    let add = UserCommand::Add {
        name: b"app",
        password: Secret(b"secret"),
    };
    let shown = format!("{:?} {add:?}", login(b"app"));
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn help_names_all_commands_behind_keywright() {
    let row = table::find(b"KEYWRIGHT").unwrap();
    let (names, _) = row.summary.split_once(':').unwrap();
    for name in names.split(", ") {
        let is_told = HELP.iter().any(|line| line.split(' ').next() == Some(name));
        assert!(is_told, "{name}");
    }
}

#[test]
fn what_is_refused_is_refused_with_the_reason() {
    for (line, expected) in [
        ("set orders 1", "nothing sets"),
        ("decr orders", "nothing sets"),
        ("multi", "there are no transactions"),
        ("hset a b c", "keeps nothing else"),
        ("nonsense", "unknown command 'nonsense'"),
        ("incr", "wrong number of arguments for 'incr' command"),
        ("incr a b", "wrong number"),
        ("incrby a x", "not an integer"),
        ("incrby a 01", "not an integer"),
        ("incrby a +1", "not an integer"),
        ("incrby a 9223372036854775808", "not an integer"),
        ("select 1", "only database 0"),
        ("hello 4", "unsupported protocol"),
        ("hello x", "not an integer"),
        ("hello 3 auth", "syntax error"),
        ("auth a b c", "syntax error"),
        ("client kill", "unknown subcommand 'kill' of CLIENT"),
        ("client id 1", "wrong number"),
        ("client setname a\tb", "connection's name"),
        ("acl list", "unknown subcommand"),
        ("config set a b", "unknown subcommand"),
        ("command getkeys", "unknown subcommand"),
        ("cluster meet", "unknown subcommand"),
        ("cluster slots 1", "wrong number"),
        ("keywright next a some 1", "syntax error"),
        ("keywright alter a", "wrong number"),
        ("keywright alter a step", "wrong number"),
        ("keywright alter a step 1 cover_s", "wrong number"),
        ("keywright alter a step x", "not an integer"),
        ("keywright alter a step 1 step 1", "syntax error"),
        (
            "keywright alter a description x description x",
            "syntax error",
        ),
        ("keywright alter a id_max 1", "syntax error"),
        ("keywright drop", "wrong number"),
        ("keywright drop a b", "wrong number"),
        ("keywright create", "wrong number"),
        ("keywright advance a", "wrong number"),
        ("keywright advance a b", "not an integer"),
        ("keywright advance a b useup", "not an integer"),
        ("keywright advance a 1 some", "syntax error"),
        ("keywright advance a 1 useup 1", "wrong number"),
        ("keywright user", "wrong number"),
        ("keywright user add a", "wrong number"),
        ("keywright user grant a use", "wrong number"),
        ("keywright user list a", "wrong number"),
        (
            "keywright user show",
            "unknown subcommand 'show' of KEYWRIGHT USER",
        ),
        (
            "keywright",
            "wrong number of arguments for 'keywright' command. Try KEYWRIGHT HELP.",
        ),
        (
            "keywright none",
            "unknown subcommand 'none' of KEYWRIGHT. Try KEYWRIGHT HELP.",
        ),
        ("keywright help me", "wrong number"),
        ("keywright demote a", "wrong number"),
        ("keywright create a some b", "syntax error"),
        ("keywright create a order", "wrong number"),
        ("keywright list a", "wrong number"),
    ] {
        parsed(&written(&words(line)), |command| {
            let refusal = command.unwrap_err();
            let text = refusal.to_string();
            assert!(text.contains(expected), "{line}: {text}");
            let code = if line == "hello 4" { "NOPROTO" } else { "ERR" };
            assert_eq!(refusal.code(), code);
        });
    }
}

/// With as few arguments as it takes, each is a command or says what is missing behind it.
#[test]
fn every_row_of_the_table_is_a_command() {
    for row in table::ROWS {
        let count = usize::try_from(row.arity.abs()).unwrap();
        let mut arguments = vec![row.name.as_bytes().to_vec()];
        arguments.resize(count, b"0".to_vec());
        parsed(&written(&arguments), |command| match command {
            Ok(_) | Err(Refusal::Subcommand(_, _)) => {}
            Err(other) => panic!("{}: {other}", row.name),
        });
        let given = usize::from(row.arity != 1);
        arguments.resize(given, Vec::new());
        if given > 0 && row.arity.abs() > 1 {
            parsed(&written(&arguments), |command| {
                assert_eq!(command, Err(Refusal::Arity(row.name)));
            });
        }
    }
}

#[test]
fn both_readers_read_the_same_of_bent_requests() {
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap()
    };
    let begin = [
        written(&words("INCR orders")),
        written(&words("INCRBY orders 16")),
        b"mget a \"b c\"\r\n".to_vec(),
        b"*2\r\n$4\r\nINCR\r\n$0\r\n\r\n".to_vec(),
        b"*1\r\n$4\r\nPING\r\n*0\r\n".to_vec(),
    ];
    for _ in 0..20_000 {
        let mut bytes = begin[random() % begin.len()].clone();
        bytes.extend_from_slice(&begin[random() % begin.len()]);
        for _ in 0..random() % 4 {
            let at = random() % bytes.len();
            match random() % 3 {
                0 => bytes[at] = b"*$:\r\n0159-+\" x"[random() % 14],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"*$\r\n09"[random() % 6]),
            }
        }
        agrees(&bytes);
    }
}
