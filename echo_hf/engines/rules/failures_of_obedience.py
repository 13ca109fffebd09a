"""Words for what fails of doing as one is told, or of doing anything at all."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.engines.rules.words import phrases

FAULTS: Mapping[str, frozenset[str]] = {
    "refusal": phrases(
        en="""content policy, content policies, policy violation, violates, guidelines, refuse,
        refuses, refused, refusing, refusal, refusals, declined, declines, denied, censored,
        censorship, not allowed, not allow, not let me, blocked, moderation, against policy,
        safety filter, safety filters, guardrails, flagged, rejected, rejects, cannot help with
        that, cannot assist, not assist, lecture, cannot create that, cannot create this, cannot
        do that, cannot generate that, cannot make that, filter thinks, content filter, filters,
        would not make it, will not make, would not generate, will not generate, will not
        create, would not create, will not draw, would not draw, will not do, will not edit,
        would not do, nanny, copyrighted, copyright, lectured, lectures, too strict, prudish,
        told me no""",
        es="""rechazó, rechaza, rechazado, se niega, se negó, política de contenido, políticas
        de contenido, censura, censurado, censuró, no me deja, no me dejó, derechos de autor, no
        quiere, no puede hacer eso, no puedo ayudar, bloqueado, bloqueó, no permite""",
        fr="""refusé, refusée, refus, politique de contenu, censure, censuré, ne veut pas, n a
        pas voulu, bloqué, droits d auteur, interdit, pas autorisé, ne me laisse pas""",
        de="""verweigert, weigert, weigert sich, weigerte, abgelehnt, lehnt ab, richtlinien,
        inhaltsrichtlinie, inhaltsrichtlinien, zensur, zensiert, blockiert, gesperrt,
        urheberrecht, nicht erlaubt, will nicht, darf nicht""",
        pt="""recusou, recusa, recusado, se recusa, se recusou, política de conteúdo, censurou,
        não me deixa, não deixa, não deixou, bloqueou, direitos autorais, negou""",
        it="""rifiuta, rifiutato, rifiuto, si è rifiutato, politica sui contenuti, norme,
        censurato, bloccato, diritto d autore, non me lo fa, non vuole, non permette""",
    ),
    "ignored instruction": phrases(
        en="""only asked to, only asked for, only asked it, opposite of what, did the opposite,
        ignored, ignores, ignoring, ignore, disregards, disregarded, not what i asked, not what
        was asked, not what i wanted, not what i said, not ask for, not asked for, never asked,
        did not ask, nothing to do with, not stick to, skipped half, forgot half, half the
        prompt, not do what, misunderstood, misunderstands, misinterpreted, misread, took it
        literally, does its own thing, did its own thing""",
        es="""ignora, ignoró, ignorado, no hace caso, no hizo caso, no es lo que pedí, no sigue,
        no siguió, no respeta, no respetó, no entiende, no entendió, no pedí, hace lo que quiere""",
        fr="""ignoré, ignorée, ne suit pas, n a pas suivi, pas ce que j ai demandé, ne respecte
        pas, n a pas respecté, ne comprend pas, pas compris, n écoute pas, pas demandé, fait ce
        qu il veut""",
        de="""ignoriert, ignorierte, hält sich nicht, befolgt nicht, nicht was ich, nicht wie
        gewünscht, nicht verstanden, versteht nicht, nicht das was, nicht verlangt, macht was es
        will""",
        pt="""ignorou, não segue, não seguiu, não respeita, não respeitou, não é o que pedi, não
        foi o que pedi, não entende, não entendeu, não pedi, faz o que quer""",
        it="""ignorato, ignorata, non segue, non ha seguito, non rispetta, non ha rispettato,
        non è quello che, non quello che ho chiesto, non capisce, non ha capito, non ho chiesto""",
    ),
    "extra object": phrases(
        en="""nobody asked for, no one asked for, out of nowhere, kept adding, keeps adding,
        there second, added random, adds random, added extra, adds extra, random extra, extra
        people, extra person, extra objects, extra stuff, two moons, two suns, duplicated,
        duplicates, duplicate, made up, hallucinated, hallucinates, hallucination,
        hallucinations""",
        es="""de la nada, añade cosas, añadió, agregó, se inventa cosas, se inventó, sobra,
        sobran, duplicado""",
        fr="sorti de nulle part, ajoute des, en trop, rajoute, rajouté, dupliqué, hallucine",
        de="aus dem nichts, dazuerfunden, fügt hinzu, hinzugefügt, doppelt, halluziniert, erfunden",
        pt="do nada, adicionou, acrescentou, inventou coisas, sobrando, alucinou",
        it="dal nulla, aggiunge, ha aggiunto, di troppo, duplicato, inventa, allucinato",
    ),
    "inconsistency": phrases(
        en="""inconsistent, inconsistency, inconsistencies, not consistent, two different, three
        different, four different, five different, different every time, every time different,
        different each time, different result, different results, unreliable, hit and miss, not
        reproduce, not replicate, cannot reproduce, not repeatable, never the same, varies""",
        es="inconsistente, inconsistencia, cada vez distinto, cada vez diferente, cada vez sale",
        fr="incohérent, incohérente, incohérence, différent à chaque fois, chaque fois différent",
        de="inkonsistent, jedes mal anders, jedesmal anders, uneinheitlich, nicht konsistent",
        pt="inconsistência, cada vez sai",
        it="incoerente, incoerenza, ogni volta diverso, ogni volta diversa",
    ),
    "slow generation": phrases(
        en="""slow, slowly, loading for, waiting for ten, waited ten, took a whole, hours later,
        takes forever, took forever, takes ages, took ages, taking forever, too long, takes
        minutes, minutes per image, timed out, times out, timeout, loading forever, minutes for
        one, minutes for picture, minutes for image, minutes per, minutes each""",
        es="lento, lenta, tarda, tardó, tarda una eternidad, tarda mucho",
        fr="lent, prend des heures, met des heures, trop long, met trop de temps",
        de="langsam, dauert ewig, dauert lange, dauerte ewig, ewig gedauert",
        pt="demora, demorou",
        it="ci mette, ci ha messo, ci vuole una vita",
    ),
    "usage limit": phrases(
        en="""rate limit, rate limits, rate limited, usage limit, daily limit, quota, hit limit,
        hit my limit, reached limit, reached your limit, reached my limit, out of credits, ran
        out, paywall, paywalled, limit reached, too expensive""",
        es="límite diario, límite de uso, sin créditos, me quedé sin, demasiado caro",
        fr="limite atteinte, plus de crédits, trop cher",
        de="limit erreicht, tageslimit, kontingent, zu teuer",
        pt="limite diário, limite de uso, sem créditos, acabou o limite",
        it="limite raggiunto, limite giornaliero, finiti i crediti, troppo caro",
    ),
    "no picture": phrases(
        en="""failed to generate, error message, generation failed, never finished, blank image,
        blank picture, black image, empty image, no image at all, only text back, crashed""",
        es="no genera nada, imagen en blanco, mensaje de error",
        fr="image vide, image noire, message d erreur",
        de="fehlermeldung, leeres bild, schwarzes bild",
        pt="imagem em branco, mensagem de erro, não gera nada",
        it="immagine vuota, messaggio di errore, non genera niente",
    ),
}
TOPICS: Mapping[str, frozenset[str]] = {
    "prompt adherence": phrases(
        en="prompt, instruction, instructions, request",
        es="instrucción, instrucciones",
        fr="consigne, consignes",
        de="anweisung, anweisungen, vorgabe, vorgaben",
        pt="instrução, instruções, comando",
        it="istruzione, istruzioni, richiesta",
    ),
    "consistency": phrases(
        en="consistency, coherence, continuity",
        es="coherencia, consistencia",
        fr="cohérence",
        de="konsistenz",
        pt="consistência",
        it="coerenza",
    ),
}
HAN_FAULTS: Mapping[str, str] = {
    "refusal": (
        "被?拒(?:绝|絕)|被拒|违规|違規|内容政策|內容政策|敏感词|敏感詞|不给(?:画|生成|做)"
        "|不給(?:畫|生成|做)|不让(?:画|生成|做)|不肯|不愿|违反|審核違|审核(?:不|没)|審核(?:不|沒)"
        "|和谐|拒否|断られ|断ら|ポリシー|規約|弾かれ|生成できません|作ってくれない|描いてくれない"
        "|お断り"
    ),
    "ignored instruction": (
        "没按|沒按|不按|没有按|沒有按|不听话|不聽話|无视|無視(?!野)|没照|不遵循|没遵循|答非所问"
        "|听不懂|看不懂(?:提示|指令)|没理解|指示を(?:無視|聞|守)|言うことを聞"
        "|指示通りに(?:なら|なって|いか|動か)|指示と違|頼んで(?:い)?ない|頼んでません"
        "|プロンプト(?:を)?無視"
    ),
    "extra object": (
        "凭空|憑空|多出(?:来|來|了)?|乱加|亂加|自己加|擅自|画蛇添足|勝手に|余計な"
        "|増えて(?:い|る|し)|いらないもの"
    ),
    "missing object": (
        "不见了|不見了|消失了|没了|沒了|少了|缺少|缺了|漏了|漏掉|忘了|没有画|沒有畫|没画|沒畫"
        "|消えた|消えて|消えちゃ|なくなっ|無くなっ|抜けて|抜けた|描かれて(?:い)?ない"
        "|入って(?:い)?ない"
    ),
    "inconsistency": (
        "不一致|不统一|不統一|每次都不(?:一样|同)|每次都不|时好时坏|時好時壞|看运气|看運氣|随机性"
        "|毎回(?:違|変わ)|一貫(?:性|し)[^。]{0,3}(?:ない|なし|ず)|運次第|安定しない|ブレる"
    ),
    "slow generation": "太慢|好慢|很慢|慢死|等了(?:好|很|半|几|十)|遅い|遅すぎ|時間がかか|重い",
    "usage limit": (
        "额度|額度|次数(?:用完|限制|不够)|次數|达到上限|達到上限|限额|上限に|制限に|回数制限|使い切"
    ),
}
HAN_TOPICS: Mapping[str, str] = {
    "prompt adherence": "提示词|提示詞|指令|指示|プロンプト",
}
